import { useEffect, useMemo, useRef, useState } from "react";
import { addFrom, connect, type Fits } from "../canvas/Canvas";
import { portsOf } from "../ports";
import { ask, consented, enter, FRAME, get, graphOf, openDoc, type Sweep, set, start, toast, useStudio } from "../store";
import { share } from "../share";
import type { Doc, Kind } from "../types";
import { ago, endsOf } from "../words";
import { matchingKinds } from "./Palette";

const close = () => set({ dialog: "", dialogFrom: "", dialogAt: null, consent: null });

function Frame({ title, children, wide }: { title: string; children: React.ReactNode; wide?: boolean }) {
  const place = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = place.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog ref={place} className={wide ? "wide" : ""} aria-label={title} onCancel={close} onClick={(e) => e.target === place.current && close()}>
      <h2>{title}</h2>
      {children}
    </dialog>
  );
}

interface Choice {
  key: string;
  label: string;
  note: string;
  off?: boolean;
}

/** A filtered list: type to filter, arrows to move, Enter to pick. Picking a disabled choice shows its note as an error. */
function Chooser({ label, choices, onPick, filter = true, words: external, onWords }: { label: string; choices: Choice[]; onPick: (key: string) => void; filter?: boolean; words?: string; onWords?: (w: string) => void }) {
  const [typed, setTyped] = useState("");
  const words = external ?? typed;
  const [at, setAt] = useState(0);
  const shown = useMemo(() => {
    const parts = words.toLowerCase().split(/\s+/).filter(Boolean);
    return (filter ? choices.filter((c) => parts.every((p) => c.label.toLowerCase().includes(p))) : choices).slice(0, 60);
  }, [choices, words, filter]);
  useEffect(() => setAt(0), [words, choices]);
  const pick = (choice: Choice | undefined) => {
    if (!choice) return;
    if (choice.off) toast(choice.note, "error");
    else onPick(choice.key);
  };
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => {
    list.current?.children[at]?.scrollIntoView({ block: "nearest" });
  }, [at]);
  return (
    <div className="chooser">
      <input
        autoFocus
        role="combobox"
        aria-expanded="true"
        aria-controls="choices"
        aria-activedescendant={shown[at] ? `choice-${at}` : undefined}
        aria-label={label}
        placeholder={label}
        value={words}
        onChange={(e) => (onWords ?? setTyped)(e.target.value)}
        onKeyDown={(e) => {
          if (e.key === "ArrowDown") setAt(Math.min(at + 1, shown.length - 1));
          else if (e.key === "ArrowUp") setAt(Math.max(at - 1, 0));
          else if (e.key === "Enter") pick(shown[at]);
          else return;
          e.preventDefault();
        }}
      />
      <ul id="choices" role="listbox" aria-label={label} ref={list}>
        {shown.map((choice, i) => (
          <li key={choice.key} id={`choice-${i}`} role="option" aria-selected={i === at} aria-disabled={choice.off} onMouseMove={() => setAt(i)} onClick={() => pick(choice)}>
            <b>{choice.label}</b>
            <small>{choice.note}</small>
          </li>
        ))}
      </ul>
    </div>
  );
}

function Add() {
  const kinds = useStudio((s) => s.kinds);
  const [at, from] = [useStudio((s) => s.dialogAt), useStudio((s) => s.dialogFrom)];
  const kind = useStudio((s) => {
    const [node, port] = endsOf(from || ".");
    const source = graphOf(s)?.nodes[node];
    return source ? portsOf(source, s.kinds, s.doc?.graph.graphs).outputs.find((p) => p.name === port)?.type.kind : undefined;
  });
  const [words, setWords] = useState("");
  const choices = useMemo(() => {
    // For a wire that was dropped on the canvas: nodes with an input of its type come before those that accept any type.
    const rank = (each: Kind) => (!kind || kind === "any" ? 0 : each.inputs.some((p) => p.type.kind === kind) ? 0 : each.inputs.some((p) => p.type.kind === "any") ? 1 : 2);
    const list = matchingKinds(kinds, words).filter((each) => rank(each) < 2);
    return list.sort((a, b) => rank(a) - rank(b)).map((each) => ({ key: each.name, label: each.name, note: each.summary }));
  }, [kinds, words, kind]);
  return (
    <Frame title={from ? `Add a node for ${from}` : "Add a node"}>
      <Chooser label="name or purpose" choices={choices} filter={false} words={words} onWords={setWords} onPick={(type) => {
        close();
        set({ dialogAt: null, dialogFrom: "" });
        void addFrom(type, at, from);
      }} />
    </Frame>
  );
}

/** All of the code that a run would execute; it must be read before it is trusted. */
function Consent() {
  const consent = useStudio((s) => s.consent);
  if (!consent) return null;
  const lines = consent.code.reduce((sum, [, source]) => sum + source.split("\n").length, 0);
  return (
    <Frame title="This graph contains Python code" wide>
      <p>
        {consent.code.length} Code node{consent.code.length > 1 ? "s" : ""} with {lines} line{lines > 1 ? "s" : ""} in total run with your rights, without a sandbox. Read all of it first.
      </p>
      <div className="consent" tabIndex={0} role="region" aria-label="code of this graph">
        {consent.code.map(([id, source]) => (
          <section key={id}>
            <h3>{id}</h3>
            <pre>{source}</pre>
          </section>
        ))}
      </div>
      <div className="row">
        <button type="button" onClick={close}>Cancel</button>
        <button type="button" className="go" onClick={() => void start(consent.paused, true, consent.sweep)}>Run this code</button>
      </div>
    </Frame>
  );
}

function Connect() {
  const from = useStudio((s) => s.dialogNode);
  const node = useStudio((s) => graphOf(s)?.nodes[from]);
  const kinds = useStudio((s) => s.kinds);
  const graphs = useStudio((s) => s.doc?.graph.graphs);
  const outputs = node ? portsOf(node, kinds, graphs).outputs : [];
  const [port, setPort] = useState(() => {
    // Opened for a wire that was dropped on a node with several inputs that fit.
    const [node, name] = endsOf(get().dialogFrom || ".");
    return node === from ? name : "";
  });
  const [targets, setTargets] = useState<Choice[]>([]);
  useEffect(() => {
    if (!port) return;
    void ask<Fits>("fits", { doc: get().doc?.doc, source: `${from}.${port}`, inside: get().inside }).then((fits) => {
      const all = Object.entries(fits ?? {}).map(([end, fit]) => ({ key: end, label: end, note: fit.why || (fit.replaces ? `replaces ${fit.replaces}` : fit.delay ? "closes a cycle: arrives one tick later" : "compatible"), off: !fit.ok, rank: Number(!fit.ok) + Number(!!fit.replaces) }));
      setTargets(all.sort((a, b) => a.rank - b.rank || a.label.localeCompare(b.label)));
    });
  }, [port, from]);
  if (!port)
    return (
      <Frame title={`Connect ${from}`}>
        <Chooser label="output" choices={outputs.map((p) => ({ key: p.name, label: p.name, note: `${p.type.text}. ${p.help}` }))} onPick={setPort} />
      </Frame>
    );
  return (
    <Frame title={`Connect ${from}.${port} to`}>
      <Chooser key={port} label="input" choices={targets} onPick={(end) => {
        close();
        void connect(`${from}.${port}`, end);
      }} />
    </Frame>
  );
}

const KEYS: [string, string][] = [
  ["A", "add a node"],
  ["C", "connect the selected node"],
  ["/", "go to a node by name"],
  ["Enter", "edit the settings of the selected node"],
  ["Esc", "return to the canvas"],
  ["Tab, Shift+Tab", "next node, previous node"],
  ["Arrows", "move the selected node"],
  ["Delete", "remove the selection"],
  ["Ctrl+Z, Ctrl+Shift+Z", "undo, redo"],
  ["Ctrl+C, Ctrl+V, Ctrl+D", "copy, paste, duplicate"],
  ["Ctrl+A", "select all"],
  ["G, U", "group, ungroup"],
  ["M, B", "mute, bypass the selected nodes"],
  ["K", "put a comment behind the selected nodes"],
  ["L", "tidy the layout"],
  ["F", "fit the graph to the screen"],
  ["E", "show the program"],
  ["Ctrl+Enter", "run, pause, resume"],
  ["T, N, J", "step one tick, step one node, run to the next update"],
  ["Ctrl+O", "open another graph"],
  ["?", "show this list"],
];

function Keys() {
  return (
    <Frame title="Keyboard shortcuts" wide>
      <dl className="keys">
        {KEYS.map(([keys, words]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{words}</dd>
          </div>
        ))}
      </dl>
    </Frame>
  );
}

function Group() {
  const chosen = useStudio((s) => s.selected);
  const ids = chosen.filter((id) => !id.startsWith(FRAME));
  const [name, setName] = useState("part");
  return (
    <Frame title={`Group ${ids.length} node${ids.length > 1 ? "s" : ""} into one`}>
      <form onSubmit={(e) => {
        e.preventDefault();
        close();
        void ask("group", { doc: get().doc?.doc, ids, name, inside: get().inside }).then((done) => done && set({ selected: [name] }));
      }}>
        <p className="quiet">{ids.join(", ")}</p>
        <label className="line-field">
          group name <input autoFocus value={name} onChange={(e) => setName(e.target.value)} />
        </label>
        <button type="submit">Group</button>
      </form>
    </Frame>
  );
}

function Import() {
  const [text, setText] = useState("");
  const [name, setName] = useState("imported");
  const read = (file: File | undefined) => {
    if (!file) return;
    setName(file.name.replace(/\.[^.]*$/, ""));
    void file.text().then(setText);
  };
  return (
    <Frame title="Import a graph, a program or a workflow" wide>
      <form onSubmit={(e) => {
        e.preventDefault();
        void ask<Doc & { notes: string[] }>("import", { name, text }).then((doc) => {
          if (!doc) return;
          enter(doc);
          for (const note of doc.notes.slice(0, 4)) toast(note);
        });
      }}>
        <p className="quiet">The JSON of a graph, a program that the studio exported, or a ComfyUI workflow with PPO nodes. No code is executed.</p>
        <div className="row">
          <label className="line-field">
            name <input value={name} onChange={(e) => setName(e.target.value)} />
          </label>
          <label className="line-field">
            file <input type="file" accept=".json,.py" onChange={(e) => read(e.target.files?.[0])} />
          </label>
        </div>
        <textarea aria-label="text to import" rows={12} spellCheck={false} value={text} onChange={(e) => setText(e.target.value)} placeholder="or paste the text here" />
        <button type="submit" disabled={!text.trim()}>Import</button>
      </form>
    </Frame>
  );
}

function Find() {
  const nodes = useStudio((s) => graphOf(s)?.nodes) ?? {};
  return (
    <Frame title="Go to a node">
      <Chooser label="node name" choices={Object.entries(nodes).map(([id, node]) => ({ key: id, label: id, note: node.type }))} onPick={(id) => {
        close();
        set({ selected: [id], edge: "" });
      }} />
    </Frame>
  );
}

function Open() {
  const documents = useStudio((s) => s.documents);
  return (
    <Frame title="Open a graph">
      <Chooser label="graph name" choices={documents.map((d) => ({ key: d.name, label: d.name, note: "" }))} onPick={(name) => void openDoc(name)} />
    </Frame>
  );
}

function Share() {
  const kinds: ["png" | "html" | "json", string][] = [["png", "PNG picture"], ["html", "HTML page"], ["json", "JSON"]];
  return (
    <Frame title="Share this graph">
      <p className="quiet">Each file contains the graph. Drop it on the page of the studio to open it.</p>
      <div className="row">
        {kinds.map(([kind, words]) => (
          <button type="button" key={kind} onClick={() => void share(kind).then(close)}>{words}</button>
        ))}
      </div>
    </Frame>
  );
}

const valuesOf = (text: string): unknown[] =>
  text.split(",").map((part) => part.trim()).filter(Boolean).map((part) => {
    try {
      return JSON.parse(part) as unknown;
    } catch {
      return part;
    }
  });

/** Runs with all combinations of some values. */
function SweepDialog() {
  const doc = useStudio((s) => s.doc);
  const kinds = useStudio((s) => s.kinds);
  const seeds = useStudio((s) => s.seeds);
  const [lines, setLines] = useState<[string, string][]>([["", ""]]);
  const names = Object.entries(doc?.graph.nodes ?? {}).flatMap(([id, node]) => (kinds[node.type]?.params ?? []).filter((p) => p.name !== "source").map((p) => `${id}.${p.name}`));
  const sweep: Sweep = Object.fromEntries(lines.filter(([name]) => name).map(([name, text]) => [name, valuesOf(text)]));
  const runs = Object.values(sweep).reduce((n, values) => n * values.length, Object.keys(sweep).length ? seeds : 0);
  const change = (n: number, line: [string, string]) => setLines(lines.map((old, i) => (i === n ? line : old)));
  return (
    <Frame title="Sweep: one run per combination of values">
      <form onSubmit={(e) => {
        e.preventDefault();
        close();
        void consented(false, sweep);
      }}>
        {lines.map(([name, text], n) => (
          <div className="row" key={n}>
            <select autoFocus={n === 0} aria-label={`parameter ${n + 1}`} value={name} onChange={(e) => change(n, [e.target.value, text])}>
              <option value="">parameter…</option>
              {names.map((each) => <option key={each}>{each}</option>)}
            </select>
            <input aria-label={`values ${n + 1}`} placeholder="values, such as 0.0003, 0.001" value={text} onChange={(e) => change(n, [name, e.target.value])} />
          </div>
        ))}
        <div className="row">
          <button type="button" disabled={lines.length > 3} onClick={() => setLines([...lines, ["", ""]])}>Another parameter</button>
          <span className="grow" />
          <button type="submit" className="go" disabled={runs < 1}>Start {runs || ""} runs</button>
        </div>
        <p className="quiet">{seeds} seed{seeds > 1 ? "s" : ""} per combination; they run one after the other. <code>surefoot tune</code> searches larger spaces.</p>
      </form>
    </Frame>
  );
}

function SaveNode() {
  const id = useStudio((s) => s.dialogNode);
  const [name, setName] = useState(id);
  return (
    <Frame title={`Save ${id} as a node`}>
      <form onSubmit={(e) => {
        e.preventDefault();
        close();
        void ask("save_node", { doc: get().doc?.doc, id, name, inside: get().inside }).then((done) => done && toast(`${name} is in the list of nodes`));
      }}>
        <p className="quiet">It appears in the list of nodes of every graph of this directory. Its ports are the Inlet and Outlet nodes inside; open the group to rename them.</p>
        <label className="line-field">
          node name <input autoFocus value={name} onChange={(e) => setName(e.target.value)} />
        </label>
        <button type="submit">Save</button>
      </form>
    </Frame>
  );
}

function Trash() {
  const [items, setItems] = useState<{ item: string; name: string; changed: number }[] | null>(null);
  useEffect(() => void ask<{ item: string; name: string; changed: number }[]>("trash").then((list) => list && setItems(list)), []);
  return (
    <Frame title="Trash">
      {items?.length === 0 && <p className="quiet">The trash is empty.</p>}
      <ul className="trash">
        {(items ?? []).map((each) => (
          <li key={each.item}>
            <b>{each.name}</b> <small className="quiet">deleted {ago(each.changed)}</small>
            <button type="button" onClick={() => void ask<Doc>("restore", { item: each.item }).then((doc) => doc && enter(doc))}>Restore</button>
          </li>
        ))}
      </ul>
    </Frame>
  );
}

export function Dialogs() {
  const dialog = useStudio((s) => s.dialog);
  switch (dialog) {
    case "consent":
      return <Consent />;
    case "share":
      return <Share />;
    case "trash":
      return <Trash />;
    case "add":
      return <Add />;
    case "connect":
      return <Connect />;
    case "keys":
      return <Keys />;
    case "group":
      return <Group />;
    case "import":
      return <Import />;
    case "find":
      return <Find />;
    case "open":
      return <Open />;
    case "sweep":
      return <SweepDialog />;
    case "save node":
      return <SaveNode />;
    default:
      return null;
  }
}
