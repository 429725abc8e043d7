// Where an advantage comes from: the rewards and values behind it.

import { useEffect, useRef, useState } from "react";
import { ask, flatId, useStudio } from "../store";
import type { Advantages } from "../types";
import { short } from "../words";

const WIDTH = 250;
const HEIGHT = 56;
/** Contributions that the table lists. */
const MOST = 10;

export function Why({ node }: { node: string }) {
  const updates = useStudio((s) => (s.session?.doc === s.doc?.doc ? (s.session?.updates ?? 0) : 0));
  const id = useStudio((s) => flatId(s, node));
  const [data, setData] = useState<Advantages | null>(null);
  const [stream, setStream] = useState(0);
  const [at, setAt] = useState<number | null>(null);
  const asked = useRef({ stream: -1, time: 0 });
  useEffect(() => {
    // At most once per second, and not while somebody reads an explanation: the numbers would change under it.
    const fresh = asked.current.stream !== stream;
    if (updates === 0 || (!fresh && (at !== null || Date.now() - asked.current.time < 1000))) return;
    asked.current = { stream, time: Date.now() };
    void ask<Advantages>("advantages", { node: id, stream }).then((answer) => answer && setData(answer));
  }, [id, updates, stream, at]);
  if (!data) return <p className="quiet">After the first update this shows the advantages and the rewards that they come from.</p>;
  const { rows, gamma, lam } = data;
  const most = Math.max(1e-9, ...rows.map((row) => Math.abs(row.advantage)));
  const step = WIDTH / rows.length;
  const end = at === null ? -1 : rows.findIndex((row, t) => t >= at && row.ended);
  const terms = at === null ? [] : rows.slice(at, end < 0 ? undefined : end + 1).map((row, k) => ({ ...row, t: at + k, weight: (gamma * lam) ** k }));
  const listed = [...terms].sort((a, b) => Math.abs(b.weight * b.delta) - Math.abs(a.weight * a.delta)).slice(0, MOST).sort((a, b) => a.t - b.t);
  const rest = terms.filter((term) => !listed.includes(term)).reduce((sum, term) => sum + term.weight * term.delta, 0);
  return (
    <div className="why" data-testid="why">
      <p className="quiet">
        Advantages of update {data.update}, copy{" "}
        <select aria-label="copy of the environment" value={data.stream} onChange={(e) => { setAt(null); setStream(Number(e.target.value)); }}>
          {Array.from({ length: data.streams }, (_, n) => <option key={n}>{n}</option>)}
        </select>
      </p>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`advantages of ${rows.length} steps`} onClick={(e) => {
        const box = e.currentTarget.getBoundingClientRect();
        setAt(Math.min(rows.length - 1, Math.max(0, Math.floor(((e.clientX - box.left) / box.width) * rows.length))));
      }}>
        {rows.map((row, t) => {
          const tall = (Math.abs(row.advantage) / most) * (HEIGHT / 2);
          const part = terms.find((term) => term.t === t);
          return <rect key={t} x={t * step} width={Math.max(step - 0.4, 0.4)} y={row.advantage >= 0 ? HEIGHT / 2 - tall : HEIGHT / 2} height={Math.max(tall, 0.6)} className={t === at ? "picked" : row.advantage >= 0 ? "plus" : "minus"} opacity={at === null ? 1 : part ? 0.3 + 0.7 * part.weight : 0.12} />;
        })}
      </svg>
      <input type="range" aria-label="step to explain" min={0} max={rows.length - 1} value={at ?? 0} onChange={(e) => setAt(Number(e.target.value))} />
      {at === null ? (
        <p className="quiet">Click an advantage to see the rewards that it comes from.</p>
      ) : (
        <>
          <p>
            Step {at}: advantage <b>{short(rows[at]?.advantage)}</b> = Σ (γλ)ᵏ δ over {terms.length} step{terms.length > 1 ? "s" : ""} {end < 0 ? "to the end of the rollout" : "to the end of the episode"}, γλ = {short(gamma * lam)}.
          </p>
          <table>
            <thead>
              <tr><th scope="col">step</th><th scope="col" className="right">reward</th><th scope="col" className="right" title="r + γV′ − V">δ</th><th scope="col" className="right">(γλ)ᵏ</th><th scope="col" className="right">adds</th></tr>
            </thead>
            <tbody>
              {listed.map((term) => (
                <tr key={term.t} title={`δ = ${short(term.reward)} + ${short(gamma)} · ${short(term.next)} − ${short(term.value)}`}>
                  <td>{term.t}{term.ended ? " end" : ""}</td>
                  <td className="right">{short(term.reward)}</td>
                  <td className="right">{short(term.delta)}</td>
                  <td className="right">{term.weight.toFixed(2)}</td>
                  <td className="right">{short(term.weight * term.delta)}</td>
                </tr>
              ))}
              {terms.length > listed.length && <tr><td colSpan={4}>{terms.length - listed.length} smaller ones</td><td className="right">{short(rest)}</td></tr>}
            </tbody>
          </table>
          <button type="button" onClick={() => setAt(null)}>Follow the run again</button>
        </>
      )}
    </div>
  );
}
