import { useEffect, useState } from "react";
import { Plot } from "../panels/Plot";
import { ask, enter, toast } from "../store";
import type { Doc, Search, SearchRow } from "../types";
import { short } from "../words";

/** Searches for settings, as `surefoot tune` leaves them beside the runs. */
export function SearchList({ rows, shown, show }: { rows: SearchRow[]; shown: string; show: (name: string) => void }) {
  return (
    <>
      <div className="row">
        <h2>Searches</h2>
        <span className="quiet">{rows.length}</span>
      </div>
      <div className="table searches" tabIndex={0} role="region" aria-label="list of searches">
        <table>
          <thead>
            <tr>
              <th scope="col">search</th>
              <th scope="col">of</th>
              <th scope="col">state</th>
              <th scope="col" className="right">trials</th>
              <th scope="col" className="right">best</th>
              <th scope="col" className="right">before</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((r) => (
              <tr key={r.search} className={r.search === shown ? "here" : ""}>
                <td>
                  <button type="button" className="link" onClick={() => show(r.search)}>{r.search}</button>
                </td>
                <td className="env">{r.of.replace(/^surefoot\//, "")}</td>
                <td>
                  <span className={`tag ${r.state}`} title={r.why}>{r.state}</span>
                </td>
                <td className="right">{r.begun === undefined ? "–" : `${r.begun} of ${r.planned}`}</td>
                <td className="right">{short(r.score)}</td>
                <td className="right">{short(r.base)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

export function SearchDetail({ row }: { row: SearchRow }) {
  const [found, setFound] = useState<Search | null>(null);
  const running = row.state === "running";
  useEffect(() => {
    if (row.state === "unreadable") return;
    const load = () => void ask<Search>("search", { search: row.search }).then((answer) => answer && setFound(answer));
    load();
    if (!running) return;
    const timer = setInterval(load, 1500);
    return () => clearInterval(timer);
  }, [row.search, row.state, running]);
  if (row.state === "unreadable") return <p className="pad bad">{row.why}</p>;
  if (!found) return <p className="quiet pad">…</p>;
  const done = found.trials.filter((t) => t.state === "done").length;
  const pruned = found.trials.filter((t) => t.state === "pruned").length;
  const numbers = found.trials.map((t) => t.number);
  const scored = (state: (name: string) => boolean) => found.trials.map((t) => (state(t.state) ? t.score : null));
  return (
    <div data-testid="search">
      <div className="row">
        <h2>{found.search}</h2>
        <span className={`tag ${found.state}`}>{found.state}</span>
      </div>
      <p className="quiet">
        {found.begun} of {found.planned} trials of {found.seeds} {found.seeds === 1 ? "seed" : "seeds"}: {done} trained to the end, {pruned} given up early.{running ? " Shown as it goes on." : ""}
      </p>
      <Plot
        title="best so far"
        x={numbers}
        height={190}
        series={[
          { label: "best so far", colour: "var(--c-policy)", values: found.so_far, as: "steps" },
          { label: "trained to the end", colour: "var(--c-obs)", values: scored((s) => s === "done"), as: "points" },
          { label: "given up", colour: "var(--quiet)", values: scored((s) => s !== "done"), as: "points" },
        ]}
      />
      <Importance shares={found.importance} done={done} />
      {found.best !== null && <Winner found={found} />}
      <h3>Trials</h3>
      <Trials found={found} />
    </div>
  );
}

function Importance({ shares, done }: { shares: Record<string, number>; done: number }) {
  const rows = Object.entries(shares);
  return (
    <>
      <h3>What mattered</h3>
      {rows.length === 0 && <p className="quiet">It can be said when more trials are trained to the end, and differ; {done} are.</p>}
      <dl className="shares">
        {rows.map(([name, share]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              <i style={{ width: `${(share * 100).toFixed(1)}%` }} />
              <span>{Math.round(share * 100)} %</span>
            </dd>
          </div>
        ))}
      </dl>
    </>
  );
}

function Winner({ found }: { found: Search }) {
  const where = found.fresh ? "on fresh seeds" : "on the seeds of the search";
  return (
    <>
      <h3>{found.state === "running" ? "Leads" : "The winner"}</h3>
      <div className="row">
        <span className="shrink">
          Trial {found.best}: <b>{short(found.score)}</b> {where}
          {found.best === 0 ? "; nothing beat what it began with" : found.base !== null && `; ${short(found.base)} before the search`}
        </span>
        {found.graph && <button type="button" className="go" onClick={() => void ask<Doc>("open_search", { search: found.search }).then((doc) => doc && enter(doc))}>Open as graph</button>}
        <button type="button" onClick={() => void navigator.clipboard.writeText(found.settings).then(() => toast("copied"))}>Copy YAML</button>
      </div>
      <pre className="yaml" role="region" tabIndex={0} aria-label="settings of the winner">{found.settings}</pre>
    </>
  );
}

function Trials({ found }: { found: Search }) {
  const [by, setBy] = useState<"number" | "score">("number");
  const list = [...found.trials].sort((a, b) => (by === "score" ? (b.score ?? -Infinity) - (a.score ?? -Infinity) : b.number - a.number));
  return (
    <div className="table" tabIndex={0} role="region" aria-label="list of trials">
      <table>
        <thead>
          <tr>
            <th scope="col" aria-sort={by === "number" ? "descending" : "none"}>
              <button type="button" className="link" onClick={() => setBy("number")}>trial</button>
            </th>
            <th scope="col">state</th>
            <th scope="col" className="right" aria-sort={by === "score" ? "descending" : "none"}>
              <button type="button" className="link" onClick={() => setBy("score")}>score</button>
            </th>
            {found.names.map((name) => (
              <th scope="col" key={name} className="right">{name}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {list.map((t) => (
            <tr key={t.number} className={t.number === found.best ? "here" : ""}>
              <td>{t.number}{t.number === 0 ? " (as it was)" : ""}</td>
              <td>
                <span className={`tag ${t.state}`} title={t.why ?? ""}>{t.state}{t.state === "running" ? ` ${t.rungs.length}/${found.rungs}` : ""}</span>
              </td>
              <td className="right" title={t.scores.map(short).join(", ")}>{short(t.score)}</td>
              {found.names.map((name) => (
                <td key={name} className="right">{short(t.params[name])}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
