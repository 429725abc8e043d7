import { useCallback, useEffect, useState } from "react";
import { download, Program } from "../panels/Code";
import { Plot } from "../panels/Plot";
import { ask, enter, openDoc, set, showRun, toast, useStudio } from "../store";
import type { Compared, Doc, Graph, RunPage, RunRow, SearchRow } from "../types";
import { grouped, short } from "../words";
import { SearchDetail, SearchList } from "./Searches";
import { Thumb } from "./Thumb";

const INKS = ["var(--c-policy)", "var(--c-obs)", "var(--c-world)", "var(--c-trigger)", "var(--c-model)", "var(--c-dict)"];

export function Runs() {
  const [rows, setRows] = useState<RunRow[] | null>(null);
  const [searches, setSearches] = useState<SearchRow[]>([]);
  const [words, setWords] = useState("");
  const chosen = useStudio((s) => s.compared);
  const setChosen = (compared: string[]) => set({ compared });
  const shown = useStudio((s) => s.shownRun);
  const setShown = showRun;
  const session = useStudio((s) => s.session?.state);
  const queue = useStudio((s) => s.queue);
  const load = useCallback(() => {
    void ask<RunRow[]>("runs").then((list) => list && setRows(list));
    void ask<SearchRow[]>("searches").then((list) => list && setSearches(list));
  }, []);
  useEffect(() => {
    load();
    const timer = setInterval(load, 4000);
    return () => clearInterval(timer);
  }, [load, session]);
  const parts = words.toLowerCase().split(/\s+/).filter(Boolean);
  const list = (rows ?? []).filter((r) => parts.every((p) => `${r.run} ${r.env} ${r.state} ${r.tags.join(" ")} ${r.finding ?? ""}`.toLowerCase().includes(p)));
  const current = rows?.find((r) => r.run === shown);
  const search = searches.find((s) => `search ${s.search}` === shown);
  return (
    <main className="runs">
      <section className="runs-list" aria-label="runs">
        <div className="row">
          <h1>Runs</h1>
          <input type="search" aria-label="filter runs" placeholder="filter: env, state, name, tag, finding" value={words} onChange={(e) => setWords(e.target.value)} />
          <span className="quiet">
            {list.length} of {rows?.length ?? "…"}
          </span>
          <span className="grow" />
          <button type="button" disabled={chosen.length < 2} onClick={() => setShown("compare")}>Compare {chosen.length || ""}</button>
        </div>
        {queue.length > 0 && (
          <section className="queue" aria-label="queue" data-testid="queue">
            <h2>Queue</h2>
            <ol>
              {queue.map((each) => (
                <li key={each.id}>
                  {each.doc} <span className="quiet">{each.label}</span>
                  <button type="button" className="cross" aria-label={`remove ${each.doc}, ${each.label} from the queue`} onClick={() => void ask("unqueue", { id: each.id })}>✕</button>
                </li>
              ))}
            </ol>
            <button type="button" onClick={() => void ask("unqueue")}>Empty the queue</button>
          </section>
        )}
        <div className="table" tabIndex={0} role="region" aria-label="list of runs">
          <table>
            <thead>
              <tr>
                <th scope="col"><span className="hidden">compare</span></th>
                <th scope="col">run</th>
                <th scope="col">env</th>
                <th scope="col">state</th>
                <th scope="col" className="right">env steps</th>
                <th scope="col" className="right">score</th>
                <th scope="col">finding</th>
              </tr>
            </thead>
            <tbody>
              {list.map((r) => (
                <tr key={r.run} className={r.run === shown ? "here" : ""}>
                  <td>
                    <input type="checkbox" aria-label={`compare ${r.run}`} checked={chosen.includes(r.run)} onChange={(e) => setChosen(e.target.checked ? [...chosen, r.run] : chosen.filter((n) => n !== r.run))} />
                  </td>
                  <td className="name">
                    <button type="button" className="link" onClick={() => setShown(r.run)}>{r.run}</button>
                    {r.tags.map((tag) => <button type="button" key={tag} className="tag" title="show runs with this tag" onClick={() => setWords(tag)}>{tag}</button>)}
                  </td>
                  <td className="env">{r.env.replace(/^surefoot\//, "")}</td>
                  <td>
                    <span className={`tag ${r.state.split(" ")[0]}`}>{r.state}</span>
                  </td>
                  <td className="right">{grouped(r.env_steps)}</td>
                  <td className="right">{short(r.score ?? r.return)}</td>
                  <td className="quiet found" title={r.finding ?? ""}>{(r.finding ?? "").slice(0, 90)}</td>
                </tr>
              ))}
            </tbody>
          </table>
          {rows?.length === 0 && <p className="quiet pad">No runs yet. Run a graph, or train one with <code>surefoot train CartPole-v1</code>.</p>}
        </div>
        {searches.length > 0 && <SearchList rows={searches} shown={search?.search ?? ""} show={(name) => setShown(`search ${name}`)} />}
      </section>
      <section className="run-detail" aria-label="details">
        {shown === "compare" ? <Compare names={chosen} /> : search ? <SearchDetail key={search.search} row={search} /> : current ? <Detail key={current.run} row={current} again={load} /> : <p className="quiet pad">Select a run to see its details; tick several to compare them.</p>}
      </section>
    </main>
  );
}

function Detail({ row, again }: { row: RunRow; again: () => void }) {
  const [page, setPage] = useState<RunPage | null>(null);
  const [code, setCode] = useState<{ text: string; graph: Graph } | null>(null);
  const metrics = useStudio((s) => s.metrics);
  useEffect(() => {
    void ask<RunPage>("curves", { run: row.run }).then((result) => result && setPage(result));
  }, [row.run, row.env_steps]);
  const resume = async () => {
    const done = await ask<{ doc: string }>("resume", { run: row.run });
    if (!done) return;
    if (done.doc) await openDoc(done.doc);
    else toast(`${row.run} continues in a separate process`);
    again();
  };
  return (
    <>
      <h2>{row.run}</h2>
      <div className="row">
        <a className="button" href={`/report/${encodeURIComponent(row.run)}`} target="_blank" rel="noreferrer">Report</a>
        <button type="button" disabled={!row.checkpoint || row.state === "running"} onClick={() => void resume()} title={row.checkpoint ? "resume from the last checkpoint" : "the run has no checkpoint"}>Resume</button>
        <button type="button" disabled={!row.graph} onClick={() => void ask<Doc>("open_run", { run: row.run }).then((doc) => doc && enter(doc))}>Open graph</button>
        <button type="button" disabled={!row.graph} onClick={() => void ask<{ text: string; graph: Graph }>("export", { run: row.run, style: "script" }).then((result) => result && setCode(code ? null : result))}>{code ? "Hide code" : "Code"}</button>
        <button type="button" className="danger" disabled={row.state === "running"} title="moves the run to .trash in the directory of runs" onClick={() => void ask("put_run_away", { run: row.run }).then((done) => {
          if (done) {
            toast(`${row.run} is in .trash of the directory of runs`);
            showRun("");
          }
          again();
        })}>Delete</button>
      </div>
      <Tags key={row.run} row={row} again={again} />
      {code && (
        <div className="code-beside">
          <div>
            <Thumb graph={code.graph} />
            <button type="button" onClick={() => void navigator.clipboard.writeText(code.text).then(() => toast("copied"))}>Copy</button>{" "}
            <button type="button" onClick={() => download(`${row.run}.py`, code.text)}>Download</button>
          </div>
          <Program text={code.text} />
        </div>
      )}
      {page && (
        <>
          <dl className="facts-row">
            {page.facts.map((f) => (
              <div key={f.label}>
                <dt>{f.label}</dt>
                <dd>
                  {f.value}
                  <small>{f.note}</small>
                </dd>
              </div>
            ))}
          </dl>
          <Plot title="return" x={page.x.env_steps} series={[{ label: "return", colour: "var(--c-policy)", values: page.returns.mean, low: page.returns.min, high: page.returns.max }]} height={190} />
          <div className="curves">
            {page.panels.map((p) => (
              <Plot key={p.name} title={p.name} x={page.x.env_steps} series={[{ label: p.name, colour: "var(--c-obs)", values: p.mean, low: p.min, high: p.max }]} healthy={metrics[p.name]?.healthy} meaning={p.meaning} bad={p.bad} height={118} />
            ))}
          </div>
          {page.findings.length > 0 && (
            <ul className="doctor">
              {page.findings.map((f, i) => (
                <li key={i} className={`${f.severity} ${f.status}`}>
                  <div>
                    <b>{f.rule} {f.title}</b> <span className="tag">{f.status === "open" ? f.severity : "resolved"}</span>
                    <p className="quiet">{f.evidence}</p>
                    <p>{f.causes.join("; or ")}</p>
                    {f.patch && <code>{f.patch}</code>}
                  </div>
                </li>
              ))}
            </ul>
          )}
          <details>
            <summary>Settings</summary>
            <dl className="settings">
              {page.config.map(([name, value]) => (
                <div key={name}>
                  <dt>{name}</dt>
                  <dd>{value}</dd>
                </div>
              ))}
            </dl>
          </details>
        </>
      )}
    </>
  );
}

function Tags({ row, again }: { row: RunRow; again: () => void }) {
  const [typed, setTyped] = useState(row.tags.join(", "));
  const save = () => {
    if (typed !== row.tags.join(", ")) void ask<{ tags: string[] }>("tag", { run: row.run, tags: typed.split(",") }).then((done) => {
      if (done) setTyped(done.tags.join(", "));
      again();
    });
  };
  return (
    <label className="line-field">
      tags <input value={typed} placeholder="separated by commas" onChange={(e) => setTyped(e.target.value)} onBlur={save} onKeyDown={(e) => e.key === "Enter" && save()} />
    </label>
  );
}

function Compare({ names }: { names: string[] }) {
  const [result, setResult] = useState<Compared | null>(null);
  const [metric, setMetric] = useState("return");
  const key = names.join("|");
  useEffect(() => {
    void ask<Compared>("compare", { runs: names, metric }).then((answer) => setResult(answer));
  }, [key, metric]);
  return (
    <div data-testid="compare">
      <div className="row">
        <h2>{names.length} runs compared</h2>
        <span className="grow" />
        <label className="line-field">
          by{" "}
          <select value={metric} onChange={(e) => setMetric(e.target.value)}>
            {["return", "approx_kl", "clip_fraction", "entropy", "explained_variance", "value_loss", "grad_norm"].map((m) => (
              <option key={m}>{m}</option>
            ))}
          </select>
        </label>
      </div>
      {result && (
        <>
          <p className="quiet">{result.what}. Runs that differ only in the seed form one row, with the interquartile mean and its 95 % confidence interval over seeds.</p>
          <Groups result={result} />
          <table className="compare">
            <thead>
              <tr>
                <th scope="col">setting</th>
                <th scope="col" className="right">n</th>
                <th scope="col" className="right">IQM</th>
                <th scope="col" className="right">min</th>
                <th scope="col" className="right">max</th>
              </tr>
            </thead>
            <tbody>
              {result.groups.map((g, i) => (
                <tr key={g.label}>
                  <td><span className="ink" style={{ background: INKS[i % INKS.length] }} /> {g.label}</td>
                  <td className="right">{g.count}</td>
                  <td className="right">{short(g.iqm)}</td>
                  <td className="right">{short(g.minimum)}</td>
                  <td className="right">{short(g.maximum)}</td>
                </tr>
              ))}
            </tbody>
          </table>
          {result.first_above_second !== undefined && <p>A run of the first group scores higher than a run of the second in {Math.round(result.first_above_second * 100)} % of all pairs.</p>}
          {Object.keys(result.different).length > 0 && (
            <div className="table" tabIndex={0} role="region" aria-label="settings that differ">
              <table className="compare">
                <thead>
                  <tr>
                    <th scope="col">different settings</th>
                    {result.runs.map((r) => (
                      <th scope="col" key={r}>{r}</th>
                    ))}
                  </tr>
                </thead>
                <tbody>
                  {Object.entries(result.different).map(([name, values]) => (
                    <tr key={name}>
                      <th scope="row">{name}</th>
                      {values.map((v, i) => (
                        <td key={i}>{v}</td>
                      ))}
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )}
        </>
      )}
    </div>
  );
}

function Groups({ result }: { result: Compared }) {
  // One x axis for curves of different lengths: the union of all steps, with interpolated values inside a curve and gaps outside.
  const x = [...new Set(result.groups.flatMap((g) => g.steps))].sort((a, b) => a - b);
  const on = (steps: number[], values: number[]) => {
    const by = new Map(steps.map((s, i) => [s, values[i] ?? null]));
    return x.map((s) => by.get(s) ?? (s < (steps[0] ?? 0) || s > (steps.at(-1) ?? 0) ? null : between(steps, values, s)));
  };
  return (
    <Plot
      title="interquartile mean per group"
      x={x}
      height={240}
      series={result.groups.map((g, i) => ({ label: g.label, colour: INKS[i % INKS.length] as string, values: on(g.steps, g.middle), low: on(g.steps, g.low), high: on(g.steps, g.high) }))}
    />
  );
}

function between(steps: number[], values: number[], s: number): number | null {
  const i = steps.findIndex((x) => x > s);
  const [x1, x2, y1, y2] = [steps[i - 1], steps[i], values[i - 1], values[i]];
  if (x1 === undefined || x2 === undefined || y1 === undefined || y2 === undefined) return null;
  return y1 + ((y2 - y1) * (s - x1)) / (x2 - x1 || 1);
}
