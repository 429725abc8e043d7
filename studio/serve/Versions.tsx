import { useState } from "react";
import { type Policy, Problem, service, type Version } from "./api";
import { ago, short } from "./words";

/** The versions, newest first, with buttons to promote them. */
export function Versions({ policy, versions, changed }: { policy: Policy; versions: Version[]; changed: () => void }) {
  const [error, setError] = useState("");
  const canary = policy.canary as [number, number] | null | undefined;
  const now = Date.now() / 1000;

  async function run(work: () => Promise<unknown>) {
    setError("");
    try {
      await work();
    } catch (why) {
      setError((why as Problem).message);
    }
    changed();
  }

  return (
    <section className="card" aria-label="Versions">
      <header>
        <h2>Versions</h2>
        <button onClick={() => void run(() => service.rollback(policy.name))}>↶ Roll back</button>
      </header>
      {error && <p className="wrong">{error}</p>}
      <div className="scroll">
        <table>
          <thead>
            <tr>
              <th>Version</th>
              <th className="right">Learned from</th>
              <th className="right">Mean reward</th>
              <th className="right">Entropy</th>
              <th>Created</th>
              <th />
            </tr>
          </thead>
          <tbody>
            {versions.slice(0, 50).map((v) => (
              <tr key={v.version} className={v.live ? "live" : ""}>
                <td>
                  <b>{v.version}</b>
                  {v.live && <span className="tag live">live</span>}
                  {canary?.[0] === v.version && <span className="tag canary">canary {Math.round(100 * canary[1])} %</span>}
                </td>
                <td className="right">{v.samples ? short(v.samples) : "untrained"}</td>
                <td className="right">{short(v.metrics["reward_mean"])}</td>
                <td className="right">{short(v.metrics["entropy"])}</td>
                <td className="quiet">{v.created_at ? ago(now - v.created_at) : "initial"}</td>
                <td className="right actions">
                  <button disabled={v.live && !canary} onClick={() => void run(() => service.promote(policy.name, v.version))} aria-label={`promote version ${v.version}`}>
                    Promote
                  </button>
                  <button disabled={v.live} onClick={() => void run(() => service.promote(policy.name, v.version, 0.1))} aria-label={`try version ${v.version} on a tenth`}>
                    10 %
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
