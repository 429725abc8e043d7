import { useState } from "react";
import { type Decision, type NewDecision, type Policy, Problem, service } from "./api";
import { percent, short } from "./words";

interface Offer {
  id: string;
  description: string;
}

const OFFERS: Offer[] = [
  { id: "refund", description: "give the money back" },
  { id: "replace", description: "send a new cup" },
  { id: "ask", description: "let a colleague answer" },
];

function randomRow(size: number): string {
  return Array.from({ length: size }, () => (2 * Math.random() - 1).toFixed(2)).join(", ");
}

/** Send a decision to a policy, show the probabilities, and report a reward. */
export function Try({ policy, changed }: { policy: Policy; changed: () => void }) {
  const reads = policy.encoder !== "none";
  const brings = policy.choose === "candidates";
  const [text, setText] = useState(reads ? "my cup arrived broken" : "");
  const [row, setRow] = useState(() => (reads ? "" : randomRow(policy.embedding_size)));
  const [offers, setOffers] = useState<Offer[]>(OFFERS);
  const [off, setOff] = useState<ReadonlySet<number>>(new Set());
  const [counts, setCounts] = useState(false);
  const [made, setMade] = useState<Decision | null>(null);
  const [told, setTold] = useState("");
  const [wrong, setWrong] = useState("");
  const names = brings ? offers.map((o) => o.id) : (policy.actions ?? []);

  async function decide() {
    setWrong("");
    setTold("");
    const question: NewDecision = { distribution: true, mode: counts ? "live" : "shadow" };
    if (reads) question.text = text;
    else question.embedding = row.split(/[\s,]+/).filter(Boolean).map(Number);
    if (brings) question.candidates = offers;
    if (off.size > 0) question.mask = names.map((_, i) => !off.has(i));
    try {
      setMade(await service.decide(policy.name, question));
      changed();
    } catch (why) {
      setMade(null);
      setWrong((why as Problem).message);
    }
  }

  async function reward(value: number) {
    if (!made) return;
    try {
      await service.reward(made.decision_id, value);
      setTold(`Reward ${short(value)} recorded. The next update learns from it.`);
      changed();
    } catch (why) {
      setWrong((why as Problem).message);
    }
  }

  const [low, high] = policy.reward_range as [number, number];
  const chances = made?.distribution as number[] | undefined;
  const toggle = (i: number) => setOff(new Set(off.has(i) ? [...off].filter((o) => o !== i) : [...off, i]));
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
        {reads ? (
          <label className="field">
            <span>Input</span>
            <textarea rows={2} value={text} onChange={(e) => setText(e.target.value)} />
          </label>
        ) : (
          <label className="field">
            <span>
              Input: {policy.embedding_size} numbers
              <button type="button" className="link" onClick={() => setRow(randomRow(policy.embedding_size))}>
                other ones
              </button>
            </span>
            <textarea rows={3} className="mono" value={row} onChange={(e) => setRow(e.target.value)} />
          </label>
        )}
        {brings && (
          <div className="offers">
            <span className="small">Candidates</span>
            {offers.map((offer, i) => (
              <div key={i} className="offer">
                <input aria-label={`id of candidate ${i + 1}`} value={offer.id} onChange={(e) => setOffers(offers.map((o, k) => (k === i ? { ...o, id: e.target.value } : o)))} />
                <input aria-label={`description of candidate ${i + 1}`} value={offer.description} onChange={(e) => setOffers(offers.map((o, k) => (k === i ? { ...o, description: e.target.value } : o)))} />
                <button type="button" className="icon" aria-label={`remove candidate ${i + 1}`} disabled={offers.length === 1} onClick={() => setOffers(offers.filter((_, k) => k !== i))}>
                  ×
                </button>
              </div>
            ))}
            <button type="button" className="link" onClick={() => setOffers([...offers, { id: `c${offers.length + 1}`, description: "" }])}>
              + another
            </button>
          </div>
        )}
        {names.length <= 24 && (
          <div className="chips" role="group" aria-label="allowed">
            {names.map((name, i) => (
              <button key={`${name}${i}`} type="button" aria-pressed={!off.has(i)} disabled={!off.has(i) && off.size === names.length - 1} onClick={() => toggle(i)} title={off.has(i) ? "forbidden" : "allowed"}>
                {name}
              </button>
            ))}
          </div>
        )}
        <div className="row">
          <button className="go">Decide</button>
          <label className="check">
            <input type="checkbox" checked={counts} onChange={(e) => setCounts(e.target.checked)} /> record it and wait for a reward
          </label>
        </div>
      </form>
      {wrong && <p className="wrong">{wrong}</p>}
      {made && (
        <div className="answer" data-decision={made.decision_id}>
          <p>
            <b className="chosen">{made.name}</b> <span className="quiet">with probability {percent(made.probability)}, version {made.policy_version}</span>
          </p>
          {chances && (
            <ol className="bars">
              {names
                .map((name, i) => ({ name, i, p: chances[i] ?? 0 }))
                .sort((a, b) => b.p - a.p)
                .slice(0, 12)
                .map(({ name, i, p }) => (
                  <li key={i} className={i === made.action ? "taken" : ""}>
                    <span>{name}</span>
                    <div className="bar">
                      <div style={{ width: `${100 * p}%` }} />
                    </div>
                    <em>{percent(p)}</em>
                  </li>
                ))}
            </ol>
          )}
          {made.mode === "live" && !told && (
            <div className="row">
              <span className="quiet">Reward:</span>
              {[low, (low + high) / 2, high].map((value, i) => (
                <button key={i} onClick={() => void reward(value)} className={["bad", "", "good"][i]}>
                  {["bad", "neutral", "good"][i]} {short(value)}
                </button>
              ))}
            </div>
          )}
          {told && <p className="quiet">{told}</p>}
        </div>
      )}
    </section>
  );
}
