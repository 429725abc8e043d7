import { newDoc, openDrawer, run, running, set, useStudio } from "../store";

interface Step {
  title: string;
  text: string;
  /** A button that does what the text describes. */
  act?: [string, () => void];
}

const STEPS: Step[] = [
  { title: "A loop that learns", text: "PPO repeats two things: it plays an environment with its network, and it improves the network with what it saw. Here this loop is a graph.", act: ["Open the CartPole template", () => void newDoc({ template: "cartpole" })] },
  { title: "Data flows from left to right", text: "Environment creates the copies of CartPole. The agent chooses an action for each observation, and Step executes it. The dashed edge brings the next observation back one tick later." , act: ["Select the agent", () => set({ selected: ["agent"], edge: "" })] },
  { title: "The trainer", text: "The trainer collects rollout_steps ticks, estimates advantages (GAE) and updates the network for some epochs over minibatches. Its settings are in the panel on the right.", act: ["Select the trainer", () => set({ selected: ["trainer"], edge: "" })] },
  { title: "The graph is a program", text: "The same loop as Python, with a marked line per node. You can export it and import it again. E shows and hides it.", act: ["Show the program", () => set({ code: true })] },
  { title: "Run it", text: "Values on the edges, the time of each node and the environment are shown while it runs. You can pause, and step by tick or node.", act: ["Run", () => {
    set({ code: false });
    void run();
  }] },
  { title: "It learns", text: "The return is the length of an episode, at most 500. It rises within a minute. The doctor checks every update. It names a problem and the setting that fixes it.", act: ["Show the curves", () => openDrawer("run")] },
];

/** A tour of six steps beside the page; the page stays usable. */
export function Tour() {
  const at = useStudio((s) => s.tour);
  const last = useStudio((s) => s.rows.at(-1)?.return);
  const on = useStudio(running);
  const step = STEPS[at];
  if (!step) return null;
  const end = () => {
    localStorage.setItem("tour", "seen");
    set({ tour: -1 });
  };
  return (
    <aside className="tour" role="region" aria-label="guided tour" data-testid="tour">
      <small className="quiet">Step {at + 1} of {STEPS.length}</small>
      <h2>{step.title}</h2>
      <p>{step.text}</p>
      {at === STEPS.length - 1 && typeof last === "number" && <p className={last > 195 ? "fine" : "quiet"}>{last > 195 ? `Learned: the return is ${Math.round(last)}.` : `The return is ${Math.round(last)}${on ? " and rises" : ""}.`}</p>}
      <div className="row">
        {step.act && <button type="button" className="go" onClick={step.act[1]}>{step.act[0]}</button>}
        {at < STEPS.length - 1 ? <button type="button" onClick={() => set({ tour: at + 1 })}>Next</button> : <button type="button" onClick={end}>Finish</button>}
        {at < STEPS.length - 1 && <button type="button" className="link" onClick={end}>Skip the tour</button>}
      </div>
    </aside>
  );
}
