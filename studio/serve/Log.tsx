/** What the policy does: its last decisions, the share and reward of each action, and how well it predicts success. */

import { useEffect, useState } from "react";
import { service, type Policy } from "./api";
import { percent, short } from "./words";

type Decisions = Awaited<ReturnType<typeof service.decisions>>;
type Statistics = Awaited<ReturnType<typeof service.statistics>>;

export function Log({ policy }: { policy: Policy }) {
  const [decisions, setDecisions] = useState<Decisions>([]);
  const [statistics, setStatistics] = useState<Statistics | null>(null);
  useEffect(() => {
    let current = true;
    void Promise.all([service.decisions(policy.name), service.statistics(policy.name)]).then(
      ([rows, numbers]) => {
        if (!current) return;
        setDecisions(rows);
        setStatistics(numbers);
      },
      () => undefined,
    );
    return () => {
      current = false;
    };
  }, [policy.name, policy.decisions, policy.rewards, policy.newest]);
  return (
    <>
      <section className="card wide shares" aria-label="Actions">
        <header>
          <h2>Actions</h2>
        </header>
        {!statistics?.actions.length && <p className="quiet">No outcome is learned from yet.</p>}
        <ol className="bars">
          {statistics?.actions.slice(0, 12).map((each) => (
            <li key={each.name}>
              <span>{each.name}</span>
              <div className="bar">
                <div style={{ width: `${100 * each.share}%` }} />
              </div>
              <em title="95 % interval of the mean reward">
                {percent(each.share)} · {short(each.reward)}
                {each.low !== null && each.high !== null ? ` (${short(each.low)} … ${short(each.high)})` : ""}
              </em>
            </li>
          ))}
        </ol>
      </section>
      <section className="card wide" aria-label="Calibration">
        <header>
          <h2>Expected and observed success</h2>
        </header>
        <ol className="bars">
          {statistics?.calibration.map((bin) => (
            <li key={bin.expected}>
              <span>{percent(bin.expected)} expected</span>
              <div className="bar">
                <div style={{ width: `${100 * bin.observed}%` }} />
              </div>
              <em>
                {percent(bin.observed)} of {short(bin.weight)}
              </em>
            </li>
          ))}
        </ol>
      </section>
      <section className="card wide log" aria-label="Decisions">
        <header>
          <h2>Last decisions</h2>
        </header>
        <table>
          <thead>
            <tr>
              <th>time</th>
              <th>choice</th>
              <th>probability</th>
              <th>expected</th>
              <th>reward</th>
            </tr>
          </thead>
          <tbody>
            {decisions.map((row) => (
              <tr key={row.number} title={row.decision_id}>
                <td>{new Date(1000 * row.time).toLocaleTimeString()}</td>
                <td>{row.name ?? "none of these"}</td>
                <td>{percent(row.probability)}</td>
                <td>{percent(row.confidence)}</td>
                <td>{row.reward === null || row.reward === undefined ? "–" : short(row.reward)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </>
  );
}
