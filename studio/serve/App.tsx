import { useCallback, useEffect, useRef, useState } from "react";
import { type Job, type Policy, Problem, service, setToken, type Version } from "./api";
import { Curve, Spark } from "./Curve";
import { Try } from "./Try";
import { theme, toggleTheme } from "./theme";
import { Log } from "./Log";
import { Versions } from "./Versions";
import { short } from "./words";

/** Milliseconds between two requests. */
const EVERY = 1000;
/** Points of a sparkline. */
const SPARK_POINTS = 60;
const CURVES = [
  ["reward_mean", "Mean reward"],
  ["success_rate", "Success rate"],
  ["calibration_error", "Calibration error"],
] as const;

export function App() {
  const [policies, setPolicies] = useState<Policy[] | null>(null);
  const [chosen, setChosen] = useState(() => decodeURIComponent(location.hash.slice(1)));
  const [problem, setProblem] = useState<Problem | null>(null);
  const [look, setLook] = useState(theme());
  const pace = useRef(new Map<string, { decisions: number; at: number; rates: number[] }>());

  const refresh = useCallback(async () => {
    try {
      const current = await service.policies();
      const now = performance.now() / 1000;
      for (const p of current) {
        const last = pace.current.get(p.name) ?? { decisions: p.decisions, at: now, rates: [] };
        if (now - last.at > 0.3) {
          last.rates = [...last.rates, (p.decisions - last.decisions) / (now - last.at)].slice(-SPARK_POINTS);
          last.decisions = p.decisions;
          last.at = now;
        }
        pace.current.set(p.name, last);
      }
      setPolicies(current);
      setProblem(null);
    } catch (why) {
      setProblem(why as Problem);
    }
  }, []);

  useEffect(() => {
    void refresh();
    const timer = setInterval(() => void refresh(), EVERY);
    return () => clearInterval(timer);
  }, [refresh]);

  const choose = (name: string) => {
    location.hash = encodeURIComponent(name);
    setChosen(name);
  };
  const policy = policies?.find((p) => p.name === chosen) ?? policies?.[0];
  return (
    <div className="page">
      <header className="top">
        <span className="logo" aria-hidden="true">
          ◣◢
        </span>
        <h1>Surefoot</h1>
        <span className="quiet">decisions</span>
        <span className="grow" />
        <span className={`status ${problem ? "off" : "on"}`}>{problem ? (problem.status === 0 ? "not reachable" : "refused") : "live"}</span>
        <button className="icon" onClick={() => setLook(toggleTheme())} aria-label={look === "dark" ? "light" : "dark"} title="Dark or light">
          {look === "dark" ? "☀" : "☾"}
        </button>
      </header>
      {problem?.status === 401 || problem?.status === 403 ? (
        <TokenForm retry={() => void refresh()} why={problem.message} />
      ) : policies === null ? (
        <p className="loading quiet">{problem ? problem.message : "Connecting to the service …"}</p>
      ) : policy === undefined ? (
        <NoPolicies created={() => void refresh()} />
      ) : (
        <div className="body">
          <nav aria-label="Policies">
            <h2>Policies</h2>
            {policies.map((p) => (
              <button key={p.name} aria-current={p.name === policy.name} onClick={() => choose(p.name)}>
                <b>{p.name}</b>
                <small>
                  {short(p.decisions)} decisions · v{p.version}
                </small>
                <Spark values={pace.current.get(p.name)?.rates ?? []} />
              </button>
            ))}
          </nav>
          <Detail key={policy.name} policy={policy} rates={pace.current.get(policy.name)?.rates ?? []} refresh={() => void refresh()} />
        </div>
      )}
    </div>
  );
}

function Detail({ policy, rates, refresh }: { policy: Policy; rates: number[]; refresh: () => void }) {
  const [versions, setVersions] = useState<Version[]>([]);
  const [curve, setCurve] = useState<string>("reward_mean");
  const [job, setJob] = useState<Job | null>(null);
  const [error, setError] = useState("");
  const load = useCallback(() => {
    service.versions(policy.name).then(setVersions, () => undefined);
  }, [policy.name]);
  useEffect(load, [load, policy.newest, policy.version, policy.canary?.[0]]);

  async function learn() {
    setError("");
    try {
      let current = await service.update(policy.name);
      setJob(current);
      while (current.state === "waiting" || current.state === "running") {
        await new Promise((done) => setTimeout(done, 300));
        current = await service.job(current.job_id);
        setJob(current);
      }
      if (current.state === "failed") setError(current.message);
    } catch (why) {
      setError((why as Problem).message);
    }
    setJob(null);
    refresh();
    load();
  }

  const points = versions
    .filter((v) => typeof v.metrics[curve] === "number")
    .map((v) => ({ x: v.version, y: v.metrics[curve] as number, live: v.live }))
    .reverse();
  const label = CURVES.find(([name]) => name === curve)![1];
  const input = policy.encoder === "none" ? `${policy.embedding_size} numbers` : `text, ${policy.encoder} to ${policy.embedding_size} numbers`;
  const options = policy.choose === "candidates" ? "candidates by their descriptions" : `${policy.actions?.length} actions`;
  const open = Math.max(0, policy.decisions - policy.rewards);
  return (
    <main>
      <div className="title">
        <div>
          <h2>{policy.name}</h2>
          <p className="quiet">
            input: {input} · chooses from {options} · rewards from {policy.reward_range[0]} to {policy.reward_range[1]}
          </p>
        </div>
        <button className="go" disabled={job !== null} onClick={() => void learn()}>
          {job ? "Learning …" : "Learn now"}
        </button>
      </div>
      {error && <p className="wrong">{error}</p>}
      <dl className="tiles">
        <Tile name="Decisions" value={short(policy.decisions)} more={`${short(rates.at(-1) ?? 0, 1)} per second`} spark={rates} />
        <Tile name="Rewards" value={short(policy.rewards)} more={`${short(open)} decisions without a reward`} />
        <Tile name="Mean reward" value={short(policy.mean_reward)} more="over the last 1,000" />
        <Tile name="Version" value={`${policy.version}`} more={policy.canary ? `canary ${policy.canary[0]} on ${Math.round(100 * policy.canary[1])} %` : policy.newest > policy.version ? `${policy.newest} is newer` : "the newest"} />
      </dl>
      <div className="columns">
        <div className="left">
        <section className="card wide" aria-label="Learning curves">
          <header>
            <h2>Learning</h2>
            <div className="segments" role="group" aria-label="curve">
              {CURVES.map(([name, title]) => (
                <button key={name} aria-pressed={curve === name} onClick={() => setCurve(name)}>
                  {title}
                </button>
              ))}
            </div>
          </header>
          <Curve points={points} label={label} empty={`No version yet. The first one follows after ${policy.training.every} outcomes.`} />
        </section>
        <Log policy={policy} />
        <Versions policy={policy} versions={versions} changed={() => (refresh(), load())} />
        </div>
        <Try policy={policy} changed={refresh} />
      </div>
    </main>
  );
}

function Tile({ name, value, more, spark }: { name: string; value: string; more: string; spark?: number[] }) {
  return (
    <div className="tile">
      <dt>{name}</dt>
      <dd>{value}</dd>
      <small>{more}</small>
      {spark && <Spark values={spark} />}
    </div>
  );
}

function TokenForm({ retry, why }: { retry: () => void; why: string }) {
  const [token, set] = useState("");
  return (
    <form
      className="card narrow"
      onSubmit={(event) => {
        event.preventDefault();
        setToken(token);
        retry();
      }}
    >
      <h2>This service requires a token</h2>
      <p className="quiet">{why}. It is stored in this tab only.</p>
      <div className="row">
        <input type="password" aria-label="token" autoFocus value={token} onChange={(e) => set(e.target.value)} />
        <button className="go">Continue</button>
      </div>
    </form>
  );
}

function NoPolicies({ created }: { created: () => void }) {
  const [error, setError] = useState("");
  const create = () =>
    service
      .create({ name: "support", actions: ["refund", "replace", "ask a person"], encoder: "hashing", embedding_size: 64 })
      .then(created, (why: Problem) => setError(why.message));
  return (
    <section className="card narrow">
      <h2>No policies yet</h2>
      <p>A policy takes a text or an embedding, chooses an action, receives a reward, and learns.</p>
      <pre>{`curl -s ${location.origin}/v1/policies -H 'Content-Type: application/json' \\\n  -d '{"name": "support", "encoder": "hashing", "embedding_size": 64,\n       "actions": ["refund", "replace", "ask a person"]}'`}</pre>
      <button className="go" onClick={() => void create()}>
        Create this policy
      </button>
      {error && <p className="wrong">{error}</p>}
    </section>
  );
}
