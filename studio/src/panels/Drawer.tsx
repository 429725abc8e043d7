import { useEffect, useState } from "react";
import { type Drawer as Tab, ask, command, consented, get, NO_FINDINGS, NO_ROWS, openDrawer, run, running, set, show, useStudio } from "../store";
import { ago, grouped, short } from "../words";
import { Plot } from "./Plot";
import { Resizer } from "./Resizer";
import { World } from "./World";

const TABS: [Tab, string][] = [
  ["run", "Curves"],
  ["world", "Environment"],
  ["doctor", "Doctor"],
  ["history", "History"],
];

/** Characters of an error beside the buttons; the node shows it, too, but may be outside of the canvas. */
const MOST_MESSAGE = 200;

export function Strip() {
  const session = useStudio((s) => (s.session?.doc === s.doc?.doc ? s.session : null));
  const elsewhere = useStudio((s) => (s.session && s.session.doc !== s.doc?.doc && ["running", "paused"].includes(s.session.state) ? s.session : null));
  const on = useStudio(running);
  const ok = useStudio((s) => s.doc?.check.ok ?? false);
  const breaks = useStudio((s) => s.breaks);
  const pace = useStudio((s) => s.pace);
  const changed = useStudio((s) => on && s.doc && s.session ? s.doc.version : 0);
  const [startVersion, setStartVersion] = useState(0);
  useEffect(() => setStartVersion(get().doc?.version ?? 0), [session?.run]);
  const batch = useStudio((s) => s.batch);
  const waiting = useStudio((s) => s.queue.length);
  const paused = session?.state === "paused";
  const starting = session?.state === "starting";
  const share = session?.tick && session.total_ticks ? session.tick / session.total_ticks : 0;
  return (
    <section className="strip" aria-label="run">
      <div className="buttons" role="group" aria-label="run control">
        <button type="button" className="go" disabled={starting || (!on && !ok)} onClick={() => void run()} title={ok ? "Ctrl+Enter" : "the graph has errors"}>
          {starting ? "Starting…" : on && !paused ? "❚❚ Pause" : on ? "▶ Resume" : "▶ Run"}
        </button>
        <button type="button" disabled={starting || (!on && !ok)} onClick={() => (on ? command("tick") : void run(true))} title="run one tick">{on ? "Step tick" : "Start paused"}</button>
        <button type="button" disabled={!on || starting} onClick={() => command("node")} title={session?.next ? `run the next node: ${session.next}` : "run the next node"}>Step node</button>
        <button type="button" disabled={!on || starting} onClick={() => command("update")} title="run until the next update">To update</button>
        <button type="button" disabled={!on} onClick={() => command("stop")}>■ Stop</button>
        {(on || elsewhere) && <button type="button" disabled={!ok} title="run this graph, as it is now, after the active run" onClick={() => void consented(false)}>Queue</button>}
      </div>
      <span className={`state ${session?.state ?? ""}`} data-testid="state">
        {elsewhere ? `${elsewhere.doc} is ${elsewhere.state}` : (session?.state ?? "not running")}
        {session?.why ? `: ${session.why}` : ""}
        {session?.error ? `: ${session.error.message.length > MOST_MESSAGE ? `${session.error.message.slice(0, MOST_MESSAGE)}…` : session.error.message}` : ""}
        {waiting ? `, ${waiting} more run${waiting > 1 ? "s" : ""}` : ""}
      </span>
      <div className="clock">
        <div className="bar" role="progressbar" aria-label="progress of the run" aria-valuenow={Math.round(share * 100)} aria-valuemin={0} aria-valuemax={100}>
          <div style={{ width: `${share * 100}%` }} />
        </div>
        <dl>
          <div><dt>tick</dt><dd data-testid="tick">{grouped(session?.tick)}</dd></div>
          <div><dt>update</dt><dd>{grouped(session?.updates)}</dd></div>
          <div><dt>steps</dt><dd>{grouped(session?.env_steps)}</dd></div>
          <div><dt>ticks/s</dt><dd>{grouped(session?.ticks_per_second)}</dd></div>
        </dl>
      </div>
      {changed > startVersion && <span className="stale" title="the run continues with the graph it was started with">graph changed since the run started</span>}
      {breaks.map((b, i) => (
        <button type="button" key={i} className="breakpoint" title="click to remove" onClick={() => void ask("breaks", { breaks: breaks.filter((_, j) => j !== i) })}>
          ⏸ {b.key || b.end} {b.test} {b.limit} ✕
        </button>
      ))}
      {batch.length > 1 && !on && (
        <button type="button" onClick={() => {
          set({ compared: batch, shownRun: "compare" });
          show("runs");
        }}>
          Compare {batch.length} runs
        </button>
      )}
      <label className="pace" title="ticks per second">
        <span className="hidden">pace</span>
        <select value={pace} onChange={(e) => void ask("pace", { pace: Number(e.target.value) })}>
          <option value={0}>full speed</option>
          <option value={240}>240/s</option>
          <option value={60}>60/s</option>
          <option value={10}>10/s</option>
          <option value={2}>2/s</option>
        </select>
      </label>
    </section>
  );
}

function Curves() {
  const rows = useStudio((s) => (s.session?.doc === s.doc?.doc ? s.rows : NO_ROWS));
  const previous = useStudio((s) => (s.session?.doc === s.doc?.doc ? s.previous : NO_ROWS));
  const metrics = useStudio((s) => s.metrics);
  const panels = useStudio((s) => s.panelNames);
  if (rows.length === 0) return <p className="quiet pad">Metrics of every update are drawn here. The healthy range is shaded; values that are not finite are marked in red.</p>;
  const x = rows.map((r) => r.env_steps ?? 0);
  // The previous run at the same steps: its last value up to each of them.
  const before = (name: string): (number | null)[] => {
    let n = -1;
    return x.map((steps) => {
      while (n + 1 < previous.length && (previous[n + 1]?.env_steps ?? 0) <= steps) n++;
      return n < 0 || (n === previous.length - 1 && (previous[n]?.env_steps ?? 0) < steps) ? null : (previous[n]?.[name] ?? null);
    });
  };
  return (
    <div className="curves" data-testid="curves">
      {panels.filter((name) => rows.some((r) => r[name] !== undefined)).map((name) => (
        <Plot key={name} title={name} x={x} series={[...(previous.length ? [{ label: "previous run", colour: "var(--quiet)", values: before(name) }] : []), { label: name, colour: name === "return" ? "var(--c-policy)" : "var(--c-obs)", values: rows.map((r) => r[name] ?? null) }]} bad={rows.flatMap((r, i) => (r[name] === null ? [i] : []))} healthy={metrics[name]?.healthy} meaning={metrics[name]?.meaning} height={118} />
      ))}
    </div>
  );
}

function Doctor() {
  const findings = useStudio((s) => (s.session?.doc === s.doc?.doc ? s.findings : NO_FINDINGS));
  const doc = useStudio((s) => s.doc?.doc);
  const on = useStudio((s) => s.session?.doc === s.doc?.doc);
  if (findings.length === 0) return <p className="quiet pad">{on ? "The doctor checks every update and has no findings." : "The doctor checks every update of a run and shows its findings on the node to change."}</p>;
  return (
    <ul className="doctor">
      {findings.filter((f) => !f.root).map((f) => (
        <li key={f.rule} className={`${f.severity} ${f.status}`} data-testid={`finding-${f.rule}`}>
          <div>
            <b>
              {f.rule} {f.title}
            </b>
            <span className="tag">{f.status === "open" ? f.severity : "resolved"}</span>
            {f.primary && <span className="tag">start here</span>}
            {f.node && (
              <button type="button" className="link" onClick={() => set({ selected: [f.node], edge: "" })}>
                {f.node}
              </button>
            )}
            <p className="quiet">
              since update {f.since_update}; {Object.entries(f.evidence).map(([k, v]) => `${k} ${short(v)}`).join(", ")}
            </p>
            <p>{f.causes.join("; or ")}</p>
            {findings.some((g) => g.root === f.rule) && (
              <p>
                consequences: {findings.filter((g) => g.root === f.rule).map((g) => `${g.rule} ${g.title}${g.status === "open" ? "" : " (resolved)"}`).join(", ")}
              </p>
            )}
          </div>
          {Object.keys(f.patch).length > 0 && (
            <button type="button" className="apply" onClick={() => void ask("apply", { doc, rule: f.rule })} title="changes the graph; takes effect in the next run">
              Apply {Object.entries(f.patch).map(([k, v]) => `${k} = ${short(v)}`).join(", ")}
            </button>
          )}
        </li>
      ))}
    </ul>
  );
}

function History() {
  const doc = useStudio((s) => s.doc);
  const [rows, setRows] = useState<{ number: number; words: string; done: boolean }[]>([]);
  useEffect(() => {
    if (doc) void ask<typeof rows>("history", { doc: doc.doc }).then((changes) => changes && setRows(changes));
  }, [doc?.doc, doc?.version, doc?.done]);
  return (
    <>
    {doc && <Versions doc={doc.doc} />}
    <ol className="past">
      {rows.map((row) => (
        <li key={row.number} className={row.done ? "" : "undone"}>
          <button type="button" onClick={() => void ask("go_to", { doc: doc?.doc, number: row.number })} title="restore the graph after this change">
            <span>{row.number}</span> {row.words}
          </button>
        </li>
      ))}
      <li>
        <button type="button" onClick={() => void ask("go_to", { doc: doc?.doc, number: 0 })}>
          <span>0</span> before the first change
        </button>
      </li>
    </ol>
    </>
  );
}

/** Named versions, which outlive undo. */
function Versions({ doc }: { doc: string }) {
  const [rows, setRows] = useState<{ name: string; t: number }[]>([]);
  const [name, setName] = useState("");
  useEffect(() => void ask<typeof rows>("versions", { doc }).then((list) => list && setRows(list)), [doc]);
  return (
    <form className="row versions" onSubmit={(e) => {
      e.preventDefault();
      void ask<typeof rows>("save_version", { doc, name }).then((list) => list && setRows(list));
      setName("");
    }}>
      <input aria-label="name of the version" placeholder="name of a version" value={name} onChange={(e) => setName(e.target.value)} />
      <button type="submit" disabled={!name.trim()}>Save version</button>
      {rows.map((row, number) => (
        <button type="button" key={row.t} className="version" title={`saved ${ago(row.t)}; click to restore it`} onClick={() => void ask("open_version", { doc, number })}>⟲ {row.name}</button>
      ))}
    </form>
  );
}

export function Drawer() {
  const drawer = useStudio((s) => s.drawer);
  const open = useStudio((s) => (s.session?.doc === s.doc?.doc ? s.findings.filter((f) => f.status === "open").length : 0));
  return (
    <section className={`drawer ${drawer ? "" : "shut"}`} aria-label="drawer">
      {drawer && <Resizer panel="bottom" />}
      <div className="tabs" role="tablist">
        {TABS.map(([name, words]) => (
          <button type="button" key={name} role="tab" aria-selected={drawer === name} onClick={() => openDrawer(drawer === name ? "" : name)}>
            {words}
            {name === "doctor" && open > 0 ? ` (${open})` : ""}
          </button>
        ))}
      </div>
      {drawer && (
        <div className="drawer-body" role="tabpanel" tabIndex={0} aria-label={TABS.find(([name]) => name === drawer)?.[1]}>
          {drawer === "run" ? (
            <div className="side-by-side">
              <Curves />
              <Preview />
            </div>
          ) : drawer === "world" ? (
            <World />
          ) : drawer === "doctor" ? (
            <Doctor />
          ) : (
            <History />
          )}
        </div>
      )}
    </section>
  );
}

function Preview() {
  const any = useStudio((s) => s.session?.doc === s.doc?.doc && s.frames.length > 0);
  return any ? <World most={1} /> : null;
}
