import { useEffect, useState } from "react";
import { Plot } from "../panels/Plot";
import { ask, enter, toast } from "../store";
import type { Doc, Search, SearchRow } from "../types";
import { short } from "../words";

/** Hyperparameter searches that `surefoot tune` saved in the folder of the runs. */
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
              <th scope="col">target</th>
              <th scope="col">state</th>
              <th scope="col" className="right">trials</th>
              <th scope="col" className="right">best</th>
              <th scope="col" className="right">baseline</th>
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
  const [result, setResult] = useState<Search | null>(null);
  const running = row.state === "running";
  useEffect(() => {
    if (row.state === "unreadable") return;
    const load = () => void ask<Search>("search", { search: row.search }).then((answer) => answer && setResult(answer));
    load();
    if (!running) return;
    const timer = setInterval(load, 1500);
    return () => clearInterval(timer);
  }, [row.search, row.state, running]);
  if (row.state === "unreadable") return <p className="pad bad">{row.why}</p>;
  if (!result) return <p className="quiet pad">…</p>;
  const done = result.trials.filter((t) => t.state === "done").length;
  const pruned = result.trials.filter((t) => t.state === "pruned").length;
  const numbers = result.trials.map((t) => t.number);
  const scored = (state: (name: string) => boolean) => result.trials.map((t) => (state(t.state) ? t.score : null));
  return (
    <div data-testid="search">
      <div className="row">
        <h2>{result.search}</h2>
        <span className={`tag ${result.state}`}>{result.state}</span>
      </div>
      <p className="quiet">
        {result.begun} of {result.planned} trials of {result.seeds} {result.seeds === 1 ? "seed" : "seeds"}: {done} completed, {pruned} pruned.{running ? " Updated while the search runs." : ""}
      </p>
      <Plot
        title="best so far"
        x={numbers}
        height={190}
        series={[
          { label: "best so far", colour: "var(--c-policy)", values: result.so_far, as: "steps" },
          { label: "completed", colour: "var(--c-obs)", values: scored((s) => s === "done"), as: "points" },
          { label: "not completed", colour: "var(--quiet)", values: scored((s) => s !== "done"), as: "points" },
        ]}
      />
      <Importance shares={result.importance} done={done} />
      {result.best !== null && <BestTrial result={result} />}
      <h3>Trials</h3>
      <Trials result={result} />
    </div>
  );
}

function Importance({ shares, done }: { shares: Record<string, number>; done: number }) {
  const rows = Object.entries(shares);
  return (
    <>
      <h3>Importance of the settings</h3>
      {rows.length === 0 && <p className="quiet">Importance is computed when more trials with different scores are completed; {done} so far.</p>}
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

function BestTrial({ result }: { result: Search }) {
  const where = result.fresh ? "on new seeds" : "on the seeds of the search";
  return (
    <>
      <h3>{result.state === "running" ? "Best trial so far" : "Best trial"}</h3>
      <div className="row">
        <span className="shrink">
          Trial {result.best}: <b>{short(result.score)}</b> {where}
          {result.best === 0 ? "; no trial beat the initial settings" : result.base !== null && `; ${short(result.base)} with the initial settings`}
        </span>
        {result.graph && <button type="button" className="go" onClick={() => void ask<Doc>("open_search", { search: result.search }).then((doc) => doc && enter(doc))}>Open as graph</button>}
        <button type="button" onClick={() => void navigator.clipboard.writeText(result.settings).then(() => toast("copied"))}>Copy YAML</button>
      </div>
      <pre className="yaml" role="region" tabIndex={0} aria-label="settings of the best trial">{result.settings}</pre>
    </>
  );
}

function Trials({ result }: { result: Search }) {
  const [by, setBy] = useState<"number" | "score">("number");
  const list = [...result.trials].sort((a, b) => (by === "score" ? (b.score ?? -Infinity) - (a.score ?? -Infinity) : b.number - a.number));
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
            {result.names.map((name) => (
              <th scope="col" key={name} className="right">{name}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {list.map((t) => (
            <tr key={t.number} className={t.number === result.best ? "here" : ""}>
              <td>{t.number}{t.number === 0 ? " (initial settings)" : ""}</td>
              <td>
                <span className={`tag ${t.state}`} title={t.why ?? ""}>{t.state}{t.state === "running" ? ` ${t.rungs.length}/${result.rungs}` : ""}</span>
              </td>
              <td className="right" title={t.scores.map(short).join(", ")}>{short(t.score)}</td>
              {result.names.map((name) => (
                <td key={name} className="right">{short(t.params[name])}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
