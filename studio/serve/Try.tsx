import { useState } from "react";
import { type Decision, type NewDecision, type Policy, Problem, service } from "./api";
import { percent, short } from "./words";

interface CandidateInput {
  id: string;
  description: string;
}

const EXAMPLES: CandidateInput[] = [
  { id: "refund", description: "give the money back" },
  { id: "replace", description: "send a new cup" },
  { id: "ask", description: "let a colleague answer" },
];

function randomRow(size: number): string {
  return Array.from({ length: size }, () => (2 * Math.random() - 1).toFixed(2)).join(", ");
}

/** Send a decision to a policy, show the probabilities, and report a reward. */
export function Try({ policy, changed }: { policy: Policy; changed: () => void }) {
  const readsText = policy.encoder !== "none";
  const sendsCandidates = policy.choose === "candidates";
  const [text, setText] = useState(readsText ? "my cup arrived broken" : "");
  const [row, setRow] = useState(() => (readsText ? "" : randomRow(policy.embedding_size)));
  const [candidates, setCandidates] = useState<CandidateInput[]>(EXAMPLES);
  const [forbidden, setForbidden] = useState<ReadonlySet<number>>(new Set());
  const [live, setLive] = useState(false);
  const [decision, setDecision] = useState<Decision | null>(null);
  const [confirmation, setConfirmation] = useState("");
  const [error, setError] = useState("");
  const names = sendsCandidates ? candidates.map((o) => o.id) : (policy.actions ?? []);

  async function decide() {
    setError("");
    setConfirmation("");
    const request: NewDecision = { distribution: true, mode: live ? "live" : "shadow" };
    if (readsText) request.text = text;
    else request.embedding = row.split(/[\s,]+/).filter(Boolean).map(Number);
    if (sendsCandidates) request.candidates = candidates;
    if (forbidden.size > 0) request.mask = names.map((_, i) => !forbidden.has(i));
    try {
      setDecision(await service.decide(policy.name, request));
      changed();
    } catch (why) {
      setDecision(null);
      setError((why as Problem).message);
    }
  }

  async function reward(value: number) {
    if (!decision) return;
    try {
      await service.reward(decision.decision_id, value);
      setConfirmation(`Reward ${short(value)} recorded and learned from.`);
      changed();
    } catch (why) {
      setError((why as Problem).message);
    }
  }

  const [low, high] = policy.reward_range as [number, number];
  const chances = decision?.distribution as number[] | undefined;
  const toggle = (i: number) => setForbidden(new Set(forbidden.has(i) ? [...forbidden].filter((o) => o !== i) : [...forbidden, i]));
  return (
    <section className="card try" aria-label="Try a decision">
      <header>
        <h2>Try a decision</h2>
      </header>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void decide();
        }}
      >
        {readsText ? (
          <label className="field">
            <span>Input</span>
            <textarea rows={2} value={text} onChange={(e) => setText(e.target.value)} />
          </label>
        ) : (
          <label className="field">
            <span>
              Input: {policy.embedding_size} numbers
              <button type="button" className="link" onClick={() => setRow(randomRow(policy.embedding_size))}>
                randomize
              </button>
            </span>
            <textarea rows={3} className="mono" value={row} onChange={(e) => setRow(e.target.value)} />
          </label>
        )}
        {sendsCandidates && (
          <div className="offers">
            <span className="small">Candidates</span>
            {candidates.map((candidate, i) => (
              <div key={i} className="offer">
                <input aria-label={`id of candidate ${i + 1}`} value={candidate.id} onChange={(e) => setCandidates(candidates.map((o, k) => (k === i ? { ...o, id: e.target.value } : o)))} />
                <input aria-label={`description of candidate ${i + 1}`} value={candidate.description} onChange={(e) => setCandidates(candidates.map((o, k) => (k === i ? { ...o, description: e.target.value } : o)))} />
                <button type="button" className="icon" aria-label={`remove candidate ${i + 1}`} disabled={candidates.length === 1} onClick={() => setCandidates(candidates.filter((_, k) => k !== i))}>
                  ×
                </button>
              </div>
            ))}
            <button type="button" className="link" onClick={() => setCandidates([...candidates, { id: `c${candidates.length + 1}`, description: "" }])}>
              + candidate
            </button>
          </div>
        )}
        {names.length <= 24 && (
          <div className="chips" role="group" aria-label="allowed">
            {names.map((name, i) => (
              <button key={`${name}${i}`} type="button" aria-pressed={!forbidden.has(i)} disabled={!forbidden.has(i) && forbidden.size === names.length - 1} onClick={() => toggle(i)} title={forbidden.has(i) ? "forbidden" : "allowed"}>
                {name}
              </button>
            ))}
          </div>
        )}
        <div className="row">
          <button className="go">Decide</button>
          <label className="check">
            <input type="checkbox" checked={live} onChange={(e) => setLive(e.target.checked)} /> record it and wait for a reward
          </label>
        </div>
      </form>
      {error && <p className="wrong">{error}</p>}
      {decision && (
        <div className="answer" data-decision={decision.decision_id}>
          <p>
            <b className="chosen">{decision.name ?? "none of these"}</b> <span className="quiet">with probability {percent(decision.probability)}, version {decision.policy_version}</span>
          </p>
          {chances && (
            <ol className="bars">
              {names
                .map((name, i) => ({ name, i, p: chances[i] ?? 0 }))
                .sort((a, b) => b.p - a.p)
                .slice(0, 12)
                .map(({ name, i, p }) => (
                  <li key={i} className={i === decision.action ? "taken" : ""}>
                    <span>{name}</span>
                    <div className="bar">
                      <div style={{ width: `${100 * p}%` }} />
                    </div>
                    <em>{percent(p)}</em>
                  </li>
                ))}
            </ol>
          )}
          {decision.mode === "live" && !confirmation && (
            <div className="row">
              <span className="quiet">Reward:</span>
              {[low, (low + high) / 2, high].map((value, i) => (
                <button key={i} onClick={() => void reward(value)} className={["bad", "", "good"][i]}>
                  {["bad", "neutral", "good"][i]} {short(value)}
                </button>
              ))}
            </div>
          )}
          {confirmation && <p className="quiet">{confirmation}</p>}
        </div>
      )}
    </section>
  );
}
