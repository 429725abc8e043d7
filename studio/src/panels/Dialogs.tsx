import { useEffect, useMemo, useRef, useState } from "react";
import { addNode, connect } from "../canvas/Canvas";
import { portsOf } from "../ports";
import { ask, enter, get, graphOf, openDoc, set, toast, useStudio } from "../store";
import type { Doc } from "../types";
import { matchingKinds } from "./Palette";

const close = () => set({ dialog: "" });

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
          <li key={choice.key} id={`choice-${i}`} role="option" aria-selected={i === at} aria-disabled={choice.off} onMouseEnter={() => setAt(i)} onClick={() => pick(choice)}>
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
  const [words, setWords] = useState("");
  const choices = useMemo(() => matchingKinds(kinds, words).map((kind) => ({ key: kind.name, label: kind.name, note: kind.summary })), [kinds, words]);
  return (
    <Frame title="Add a node">
      <Chooser label="name or purpose" choices={choices} filter={false} words={words} onWords={setWords} onPick={(type) => {
        close();
        void addNode(type);
      }} />
    </Frame>
  );
}

function Connect() {
  const from = useStudio((s) => s.dialogNode);
  const node = useStudio((s) => graphOf(s)?.nodes[from]);
  const kinds = useStudio((s) => s.kinds);
  const graphs = useStudio((s) => s.doc?.graph.graphs);
  const outputs = node ? portsOf(node, kinds, graphs).outputs : [];
  const [port, setPort] = useState("");
  const [targets, setTargets] = useState<Choice[]>([]);
  useEffect(() => {
    if (!port) return;
    void ask<Record<string, { ok: boolean; why: string; delay: boolean }>>("fits", { doc: get().doc?.doc, source: `${from}.${port}`, inside: get().inside }).then((fits) => {
      const all = Object.entries(fits ?? {}).map(([end, fit]) => ({ key: end, label: end, note: fit.why || (fit.delay ? "closes a cycle: arrives one tick later" : "compatible"), off: !fit.ok }));
      setTargets(all.sort((a, b) => Number(a.off) - Number(b.off) || a.label.localeCompare(b.label)));
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
    <Frame title="Keyboard shortcuts">
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
  const ids = useStudio((s) => s.selected);
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

export function Dialogs() {
  const dialog = useStudio((s) => s.dialog);
  switch (dialog) {
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
    default:
      return null;
  }
}
