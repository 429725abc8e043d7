import { useState } from "react";
import { openInside, removeSelected, setMode } from "../canvas/Canvas";
import { setComment } from "../canvas/marks";
import { originOf } from "../ports";
import { ask, checkOf, FRAME, flatId, get, graphOf, op, set, useStudio } from "../store";
import type { CheckFinding, Summary } from "../types";
import { endsOf, level, shapeOf, short } from "../words";
import { Field } from "./Field";
import { align, spread } from "./Menu";
import { Histogram, Spark } from "./Spark";
import { Why } from "./Why";

export function Inspector() {
  const one = useStudio((s) => (s.selected.length === 1 ? s.selected[0] : ""));
  const many = useStudio((s) => s.selected.length);
  const edge = useStudio((s) => s.edge);
  const exists = useStudio((s) => !!one && !!graphOf(s)?.nodes[one]);
  return (
    <aside className="inspector" aria-label="inspector">
      {edge ? <EdgePanel key={edge} target={edge} /> : one && exists ? <NodePanel key={one} id={one} /> : one?.startsWith(FRAME) ? <CommentPanel key={one} id={one.slice(FRAME.length)} /> : many > 1 ? <ManyPanel /> : <GraphPanel />}
    </aside>
  );
}

/** The button that fixes a finding of the check. */
function Fix({ finding }: { finding: CheckFinding }) {
  const number = useStudio((s) => checkOf(s)?.findings.indexOf(finding) ?? -1);
  if (!finding.fix || number < 0) return null;
  return (
    <button type="button" className="fix" title={finding.fix} onClick={() => void ask("fix", { doc: get().doc?.doc, finding: number, inside: get().inside })}>
      Fix: {finding.fix}
    </button>
  );
}

function CommentPanel({ id }: { id: string }) {
  const text = useStudio((s) => graphOf(s)?.frames?.[id]?.text);
  const [typed, setTyped] = useState(text ?? "");
  if (text === undefined) return null;
  return (
    <>
      <h2>Comment</h2>
      <p className="quiet">Drag it to move the nodes on it, too.</p>
      <textarea aria-label="text of the comment" rows={6} value={typed} onChange={(e) => setTyped(e.target.value)} onBlur={() => typed !== text && setComment(id, { text: typed })} />
      <div className="row">
        <button type="button" className="danger" onClick={removeSelected}>Remove</button>
      </div>
    </>
  );
}

function ManyPanel() {
  const ids = useStudio((s) => s.selected);
  return (
    <>
      <h2>{ids.length} nodes</h2>
      <p className="quiet">{ids.join(", ")}</p>
      <div className="row">
        <button type="button" onClick={() => set({ dialog: "group" })}>Group into one</button>
        <button type="button" onClick={() => align(0)}>Align left</button>
        <button type="button" onClick={() => align(1)}>Align top</button>
        <button type="button" onClick={spread}>Spread</button>
        <button type="button" className="danger" onClick={removeSelected}>Remove</button>
      </div>
    </>
  );
}

function NodePanel({ id }: { id: string }) {
  const node = useStudio((s) => graphOf(s)?.nodes[id]);
  const kind = useStudio((s) => s.kinds[node?.type ?? ""]);
  const check = useStudio((s) => checkOf(s));
  const error = useStudio((s) => (s.session?.doc === s.doc?.doc && s.session?.error && (s.session.error.node === flatId(s, id) || s.session.error.node.startsWith(`${flatId(s, id)}__`)) ? s.session.error : null));
  const [name, setName] = useState(id);
  if (!node) return null;
  const findings = check?.findings.filter((f) => f.node === id || f.nodes.includes(id)) ?? [];
  const setParam = (param: string, value: unknown) => op(value === undefined ? { op: "set", id, params: {}, unset: [param] } : { op: "set", id, params: { [param]: value } });
  const rename = () => {
    if (name !== id && name) void op({ op: "rename", id, to: name }).then((done) => (done ? set({ selected: [name] }) : setName(id)));
  };
  const outputs = Object.entries(check?.outputs ?? {}).filter(([end]) => endsOf(end)[0] === id);
  return (
    <>
      <div className="title">
        <input aria-label="name of the node" value={name} onChange={(e) => setName(e.target.value)} onBlur={rename} onKeyDown={(e) => e.key === "Enter" && rename()} spellCheck={false} />
        <span>{node.type}</span>
      </div>
      <p className="quiet">
        {kind?.summary}
        {kind?.calls && (
          <>
            {" "}
            Calls <code>{kind.calls}</code>.
          </>
        )}
      </p>
      {kind?.formula && <p className="formula">{kind.formula}</p>}
      {(kind?.paper || kind?.file) && (
        <p className="quiet">
          {kind.paper && <a href={kind.paper} target="_blank" rel="noreferrer">Paper</a>}
          {kind.paper && kind.file && " · "}
          {kind.file && <code>{kind.file}</code>}
        </p>
      )}
      {error && (
        <div className="problem" role="alert" data-testid="run-error">
          <b>Failed in tick {error.tick}</b>
          <p>{error.message}</p>
          {Object.entries(error.inputs).map(([port, summary]) => (
            <p key={port}>
              <code>{port}</code> {shapeOf(summary)} {level(summary) !== null && <>mean {short(level(summary))}</>}
            </p>
          ))}
        </div>
      )}
      {findings.map((f) => (
        <p key={`${f.code}${f.port}`} className={f.level === "error" ? "problem" : "advice"}>
          {f.port && <code>{f.port}</code>} {f.message} <Fix finding={f} />
        </p>
      ))}
      {kind && Object.keys(kind.presets).length > 0 && (
        <div className="presets" role="group" aria-label="presets">
          {Object.entries(kind.presets).map(([preset, params]) => (
            <button type="button" key={preset} title={Object.entries(params).map(([k, v]) => `${k} = ${short(v)}`).join("\n")} onClick={() => void op({ op: "set", id, params })}>
              {preset}
            </button>
          ))}
        </div>
      )}
      {kind?.params.map((param) => <Field key={param.name} param={param} value={node.params?.[param.name]} onSet={(value) => setParam(param.name, value)} />)}
      {outputs.length > 0 && (
        <>
          <h3>Outputs</h3>
          <dl className="types">
            {outputs.map(([end, { type, clock }]) => (
              <div key={end}>
                <dt>{endsOf(end)[1]}</dt>
                <dd>
                  {type.text} <small>{clock}</small>
                </dd>
              </div>
            ))}
          </dl>
        </>
      )}
      <div className="row">
        <button type="button" onClick={() => set({ dialog: "connect", dialogNode: id })}>Connect… <kbd>C</kbd></button>
        {node.type === "SubGraph" && (
          <>
            <button type="button" onClick={() => openInside(id)}>Open</button>
            <button type="button" onClick={() => set({ dialog: "save node", dialogNode: id })}>Save as node…</button>
            <button type="button" onClick={() => void ask("ungroup", { doc: get().doc?.doc, id, inside: get().inside }).then(() => set({ selected: [] }))}>Ungroup</button>
          </>
        )}
        <button type="button" aria-pressed={node.mode === "mute"} title="leave the node out of runs (M)" onClick={() => setMode("mute")}>Mute</button>
        <button type="button" aria-pressed={node.mode === "bypass"} title="pass its input on (B)" onClick={() => setMode("bypass")}>Bypass</button>
        <button type="button" className="danger" onClick={removeSelected}>Remove</button>
      </div>
    </>
  );
}

function Numbers({ summary }: { summary: Omit<Summary, "tick"> }) {
  if (summary.kind === "parts")
    return (
      <>
        {Object.entries(summary.parts ?? {}).map(([name, part]) => (
          <div key={name}>
            <h4>{name}</h4>
            <Numbers summary={part} />
          </div>
        ))}
      </>
    );
  if (summary.kind === "table")
    return (
      <dl className="numbers">
        {Object.entries(summary.entries ?? {}).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{short(value)}</dd>
          </div>
        ))}
      </dl>
    );
  return (
    <>
      <p className="shape">
        {shapeOf(summary)} {summary.dtype}
        {summary.nonfinite ? <b className="bad"> {summary.nonfinite} not finite</b> : null}
      </p>
      {summary.mean !== undefined && (
        <dl className="numbers four">
          {(["mean", "std", "min", "max"] as const).map((name) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{short(summary[name])}</dd>
            </div>
          ))}
        </dl>
      )}
      {summary.histogram && summary.edges && <Histogram counts={summary.histogram} edges={summary.edges} />}
    </>
  );
}

function EdgePanel({ target }: { target: string }) {
  const edge = useStudio((s) => graphOf(s)?.edges.find((e) => e.to === target));
  const type = useStudio((s) => (edge ? checkOf(s)?.outputs[edge.from] : undefined));
  const end = useStudio((s) => {
    const graph = graphOf(s);
    const [node, port] = endsOf(edge && graph ? originOf(graph, edge.from) : ".");
    return `${flatId(s, node)}.${port}`;
  });
  const ring = useStudio((s) => (s.session?.doc === s.doc?.doc ? s.rings[end] : undefined)) ?? [];
  const [at, setAt] = useState<number | null>(null);
  const trainer = useStudio((s) => graphOf(s)?.nodes[endsOf(target)[0]]?.type === "PPOTrainerNode");
  if (!edge) return <p className="quiet">This edge no longer exists.</p>;
  const index = at === null ? ring.length - 1 : Math.min(at, ring.length - 1);
  const summary = ring[index];
  return (
    <>
      <h2 className="ends">
        {edge.from} <span>→</span> {edge.to}
      </h2>
      <p className="quiet">
        {type?.type.text} <small>{type?.clock}</small>
      </p>
      {summary ? (
        <div className="seen" data-testid="edge-values">
          <div className="big-spark">
            <Spark values={ring.map(level)} width={270} height={56} />
          </div>
          <label className="scrub">
            <span>
              tick {summary.tick.toLocaleString("en")}
              {at === null ? " · live" : ""}
            </span>
            <input type="range" aria-label="tick to show" min={0} max={Math.max(0, ring.length - 1)} value={index} onChange={(e) => setAt(Number(e.target.value) >= ring.length - 1 ? null : Number(e.target.value))} />
          </label>
          <Numbers summary={summary} />
          <BreakMaker end={end} keys={Object.keys(summary.entries ?? {})} />
        </div>
      ) : (
        <p className="quiet">Run the graph to see the values on this edge.</p>
      )}
      {trainer && (
        <>
          <h3>Why</h3>
          <Why node={endsOf(target)[0]} />
        </>
      )}
      <h3>Delay</h3>
      <DelayEditor target={target} />
      <div className="row">
        <button type="button" className="danger" onClick={removeSelected}>Disconnect</button>
      </div>
    </>
  );
}

function DelayEditor({ target }: { target: string }) {
  const edge = useStudio((s) => graphOf(s)?.edges.find((e) => e.to === target));
  const [typed, setTyped] = useState(edge?.delay?.initial === undefined ? "" : JSON.stringify(edge.delay.initial));
  if (!edge) return null;
  const change = (delay: { initial?: unknown } | null) =>
    void op({ op: "batch", ops: [{ op: "disconnect", to: edge.to }, { op: "connect", from: edge.from, to: edge.to, ...(delay ? { delay } : {}) }] });
  const initial = () => {
    if (typed.trim() === "") return {};
    try {
      return { initial: JSON.parse(typed) as unknown };
    } catch {
      return { initial: typed };
    }
  };
  return (
    <div className="delay-editor">
      <label>
        <input type="checkbox" checked={!!edge.delay} onChange={(e) => change(e.target.checked ? initial() : null)} /> one tick later
      </label>
      {edge.delay && (
        <label>
          initial value <input type="text" value={typed} placeholder="none" onChange={(e) => setTyped(e.target.value)} onBlur={() => change(initial())} />
        </label>
      )}
    </div>
  );
}

function BreakMaker({ end, keys }: { end: string; keys: string[] }) {
  const breaks = useStudio((s) => s.breaks);
  const [key, setKey] = useState(keys.includes("approx_kl") ? "approx_kl" : (keys[0] ?? ""));
  const [test, setTest] = useState(">");
  const [limit, setLimit] = useState("0.05");
  const add = () => {
    if (Number.isFinite(Number(limit))) void ask("breaks", { breaks: [...breaks, { end, test, limit: Number(limit), key }] });
  };
  return (
    <form className="break" onSubmit={(e) => {
      e.preventDefault();
      add();
    }}>
      <span>Pause when</span>
      {keys.length > 0 && (
        <select aria-label="metric" value={key} onChange={(e) => setKey(e.target.value)}>
          {keys.map((k) => (
            <option key={k}>{k}</option>
          ))}
        </select>
      )}
      <select aria-label="test" value={test} onChange={(e) => setTest(e.target.value)}>
        {[">", "<", ">=", "<=", "=="].map((t) => (
          <option key={t}>{t}</option>
        ))}
      </select>
      <input aria-label="limit" value={limit} onChange={(e) => setLimit(e.target.value)} size={6} />
      <button type="submit">Set</button>
    </form>
  );
}

function GraphPanel() {
  const doc = useStudio((s) => s.doc);
  const check = useStudio((s) => checkOf(s));
  const graph = useStudio((s) => graphOf(s));
  const inside = useStudio((s) => s.inside);
  const seeds = useStudio((s) => s.seeds);
  if (!doc || !graph) return null;
  const errors = check?.findings.filter((f) => f.level === "error") ?? [];
  const lints = check?.findings.filter((f) => f.level === "lint") ?? [];
  const settings: [keyof typeof doc.graph.run, string, string][] = [
    ["total_steps", "int", "Number of environment steps."],
    ["seed", "int", "Seed of all random numbers."],
    ["path", "auto | native | torch", "Implementation of the learner."],
  ];
  return (
    <>
      <h2>{inside || graph.name || doc.doc}</h2>
      <p className="quiet">{graph.about}</p>
      {!inside && (
        <p className={errors.length ? "problem" : "fine"} data-testid="verdict">
          {errors.length ? `${errors.length} error${errors.length > 1 ? "s" : ""} to fix before the graph can run` : `${Object.keys(graph.nodes).length} nodes, ${graph.edges.length} edges, no errors`}
        </p>
      )}
      {inside && <p className="quiet">You are editing a sub-graph. Changes apply everywhere it is used. Press Esc to leave it.</p>}
      {check?.findings.some((f) => f.fix) && (
        <button type="button" className="go" data-testid="fix-all" onClick={() => void ask("fix", { doc: doc.doc, inside }).then((done) => done && setTimeout(() => window.dispatchEvent(new Event("studio:fit")), 120))}>
          Fix all
        </button>
      )}
      <ul className="findings">
        {[...errors, ...lints].slice(0, 30).map((f, i) => (
          <li key={i} className={f.level}>
            <button type="button" onClick={() => f.node in graph.nodes && set({ selected: [f.node], edge: "" })}>
              <b>{f.port ? `${f.node}.${f.port}` : f.node}</b> {f.message}
            </button>
            <Fix finding={f} />
          </li>
        ))}
      </ul>
      {!inside && (
        <>
          <h3>Run</h3>
          <Field param={{ name: "seeds", type: "1 | 3 | 5 | 10", default: "1", required: true, legal: "one of", help: "Runs of one click, each with the next seed; Runs compares them." }} value={String(seeds)} onSet={(value) => Promise.resolve(set({ seeds: Number(value) }))} />
          <div className="row">
            <button type="button" onClick={() => set({ dialog: "sweep" })}>Sweep…</button>
          </div>
          {settings.map(([name, type, help]) => (
            <Field key={name} param={{ name, type, default: null, required: true, legal: type.includes("|") ? "one of" : type, help }} value={doc.graph.run[name]} onSet={(value) => (value === undefined ? Promise.resolve(null) : op({ op: "run", settings: { [name]: value } }))} />
          ))}
        </>
      )}
    </>
  );
}
