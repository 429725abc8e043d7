/** The eight endpoints of `surefoot serve --compat directive-023` as an object, with its own server. Node only. */

import { HashingEncoder } from "./encoder.js";
import type {
  EpisodeResult,
  RLAction,
  RLConfig,
  RewardModel,
  TrainingExperience,
  TrainingStats,
  UpdateResult,
} from "./experience.js";
import { NotFound, SurefootError } from "./errors.js";
import { classify, type Category } from "./prompts/classify.js";
import { allowed, mutate, type MutationType, type PromptVariation } from "./prompts/mutations.js";
import { score } from "./prompts/scoring.js";
import { TOKEN_COST } from "./prompts/tables.js";
import { tokens } from "./prompts/text.js";
import { Server } from "./server.js";
import { Transport } from "./transport.js";

interface Selected {
  action: number;
  mutation_type: MutationType;
  log_prob: number;
  value: number;
  decision_id: string;
}

const AT_ONCE = 16;
/** An update waits for its job. */
const UPDATE_TIMEOUT = 600_000;

export class RLInterface {
  readonly config: RLConfig;
  private server: Server | undefined;
  private starting: Promise<void> | undefined;
  private transport: Transport;
  private rewardModel: RewardModel | undefined;

  constructor(config: Partial<RLConfig> = {}) {
    const dim = config.embeddingDim ?? 1536;
    const encoder = new HashingEncoder(dim);
    this.config = {
      serverHost: "localhost",
      serverPort: Number(process.env["SUREFOOT_PORT"] ?? 8765),
      pythonPath: process.env["SUREFOOT_PYTHON"] ?? "python3",
      embeddingDim: dim,
      autoStartServer: true,
      dataDir: "decisions",
      durability: "process",
      minBufferSize: 128,
      startTimeout: 60_000,
      embed: (text) => encoder.encode(text),
      ...config,
    };
    this.transport = this.transportTo(`http://${this.host}:${this.config.serverPort}`);
  }

  /** Start a server, unless one already answers at the address: that one is used and left running. */
  startServer(): Promise<void> {
    this.starting ??= this.start().catch((why: unknown) => {
      this.starting = undefined;
      throw why;
    });
    return this.starting;
  }

  /** End the server that was started here; resolves when it is gone. */
  async stopServer(): Promise<void> {
    const { starting } = this;
    this.starting = undefined;
    await starting?.catch(() => {}); // the caller of startServer gets the error
    const { server } = this;
    this.server = undefined;
    await server?.stop();
  }

  async checkHealth(): Promise<boolean> {
    try {
      const told = await this.transport.send({ method: "GET", path: "/health" }, { timeout: 2_000, maxRetries: 0 });
      return (told as { status?: string }).status === "ok";
    } catch (why) {
      if (why instanceof SurefootError) return false;
      throw why;
    }
  }

  /** Every mutation's probability; nothing is decided. */
  async getActionDistribution(embedding: ArrayLike<number>): Promise<Record<MutationType, number>> {
    const told = (await this.post("/get_distribution", { embedding: Array.from(embedding) }, true)) as {
      probabilities: number[];
      mutation_types: MutationType[];
    };
    const pairs = told.mutation_types.map((name, i) => [name, told.probabilities[i] as number]);
    return Object.fromEntries(pairs) as Record<MutationType, number>;
  }

  async selectAction(embedding: ArrayLike<number>, deterministic = false): Promise<RLAction> {
    const told = (await this.post("/select_action", { embedding: Array.from(embedding), deterministic })) as Selected;
    return {
      actionIndex: told.action,
      mutationType: told.mutation_type,
      probability: Math.exp(told.log_prob),
      logProb: told.log_prob,
      value: told.value,
      decisionId: told.decision_id,
    };
  }

  async selectMutation(prompt: string, deterministic = false): Promise<RLAction> {
    return this.selectAction(await this.config.embed(prompt), deterministic);
  }

  async storeExperience(experience: TrainingExperience): Promise<{ stored: boolean; bufferSize: number }> {
    const told = (await this.post("/store_experience", {
      state: Array.from(experience.state),
      action: experience.action,
      reward: experience.reward,
      next_state: Array.from(experience.nextState),
      done: experience.done,
      log_prob: experience.logProb,
      value: experience.value,
      ...(experience.decisionId === undefined ? {} : { decision_id: experience.decisionId }),
    })) as { stored: boolean; buffer_size: number };
    return { stored: told.stored, bufferSize: told.buffer_size };
  }

  /** Score what a mutation made of a prompt, and tell it. */
  async collectExperience(
    prompt: string,
    mutation: PromptVariation | string,
    action: RLAction,
    done: boolean,
    category: Category = classify(prompt).category,
  ): Promise<{ stored: boolean; reward: number }> {
    const text = typeof mutation === "string" ? mutation : mutation.text;
    const reward = await this.rewardOf(prompt, text, action.mutationType, category);
    const { stored } = await this.storeExperience({
      state: await this.config.embed(prompt),
      action: action.actionIndex,
      reward,
      nextState: await this.config.embed(text),
      done,
      logProb: action.logProb,
      value: action.value,
      decisionId: action.decisionId,
    });
    return { stored, reward };
  }

  /** Learn from what is stored; null where that is too little. */
  async update(): Promise<UpdateResult | null> {
    const told = await this.post("/update", {}, false, UPDATE_TIMEOUT);
    return isMessage(told) ? null : camel<UpdateResult>(told);
  }

  /** null before anything was stored. */
  async getStats(): Promise<TrainingStats | null> {
    await this.ready();
    const told = await this.transport.send({ method: "GET", path: "/stats" });
    return isMessage(told) ? null : camel<TrainingStats>(told);
  }

  /** Mutate each prompt up to `maxSteps` times, as the policy chooses, and store the results. */
  async trainEpisode(prompts: readonly string[], options: number | { maxSteps?: number } = {}): Promise<EpisodeResult> {
    const maxSteps = typeof options === "number" ? options : (options.maxSteps ?? 5);
    if (prompts.length === 0) throw new SurefootError("there is no prompt to work on; give at least one");
    const walks: Walk[] = [];
    for (let start = 0; start < prompts.length; start += AT_ONCE) {
      walks.push(...(await Promise.all(prompts.slice(start, start + AT_ONCE).map((p) => this.walk(p, maxSteps)))));
    }
    const rewards = walks.flatMap((walk) => walk.rewards);
    return {
      avgReward: rewards.reduce((a, b) => a + b, 0) / Math.max(1, rewards.length),
      totalSteps: rewards.length,
      mutations: walks.flatMap((walk) => walk.mutations),
      texts: walks.map((walk) => walk.text),
    };
  }

  /** Keep the policy under a plain name; the name, made by the server where none is given. */
  async saveCheckpoint(path?: string): Promise<string> {
    const told = await this.post("/save", path === undefined ? {} : { path }, true);
    return (told as { path: string }).path;
  }

  /** Back to what was saved; false where there is no such name. */
  async loadCheckpoint(path: string): Promise<boolean> {
    try {
      return ((await this.post("/load", { path }, true)) as { loaded: boolean }).loaded;
    } catch (why) {
      if (why instanceof NotFound) return false;
      throw why;
    }
  }

  /** Whose scores count from now on, instead of the lint's, which no mutation raises: set one to learn what helps your task. */
  setRewardModel(model: RewardModel | RewardModel["predict"]): void {
    this.rewardModel = typeof model === "function" ? { predict: model } : model;
  }

  /** What a mutation gained: score after it less score before it, less what its tokens cost. */
  async rewardOf(before: string, after: string, mutationType: string, category: Category): Promise<number> {
    if (before === after) return 0;
    const rate = async (text: string) => {
      if (!this.rewardModel) return score(text).score;
      const rated = await this.rewardModel.predict(before, text, mutationType, category);
      return typeof rated === "number" ? rated : rated.score;
    };
    return (await rate(after)) - (await rate(before)) - TOKEN_COST * (tokens(after) - tokens(before));
  }

  private async walk(prompt: string, maxSteps: number): Promise<Walk> {
    const { category } = classify(prompt);
    const walk: Walk = { text: prompt, rewards: [], mutations: [] };
    let may = allowed(prompt);
    let state = await this.config.embed(prompt);
    for (let step = 0; step < maxSteps && may.includes(true); step++) {
      const before = walk.text;
      const action = await this.selectAction(state);
      const { actionIndex, mutationType, logProb, value, decisionId } = action;
      // A mutation that makes no sense here leaves the prompt unchanged and earns nothing.
      if (may[actionIndex]) walk.text = mutate(before, actionIndex, { category }).text;
      may = allowed(walk.text);
      const nextState = walk.text === before ? state : await this.config.embed(walk.text);
      const reward = await this.rewardOf(before, walk.text, mutationType, category);
      const done = !may.includes(true);
      await this.storeExperience({ state, action: actionIndex, reward, nextState, done, logProb, value, decisionId });
      walk.rewards.push(reward);
      walk.mutations.push(mutationType);
      state = nextState;
    }
    return walk;
  }

  private async start(): Promise<void> {
    const { config } = this;
    if (config.serverPort !== 0 && (await this.checkHealth())) return;
    const server = await Server.start({
      python: config.pythonPath,
      timeout: config.startTimeout,
      args: [
        ...["--compat", "directive-023", "--host", this.host, "--port", `${config.serverPort}`, "--data-dir", config.dataDir],
        ...["--input-dim", `${config.embeddingDim}`, "--min-buffer-size", `${config.minBufferSize}`],
        ...["--durability", config.durability, "--log-level", "warning"],
      ],
    });
    this.transport = this.transportTo(server.url);
    if (!(await this.checkHealth())) {
      await server.stop();
      throw new SurefootError(`the server at ${server.url} does not answer /health`);
    }
    this.server = server;
  }

  /** Where the server is. */
  get baseURL(): string {
    return this.transport.baseURL;
  }

  private get host(): string {
    return this.config.serverHost === "localhost" ? "127.0.0.1" : this.config.serverHost;
  }

  private transportTo(baseURL: string): Transport {
    return new Transport({ baseURL });
  }

  private async ready(): Promise<void> {
    if (this.starting) await this.starting;
    else if (this.config.autoStartServer) await this.startServer();
  }

  private async post(path: string, body: unknown, repeatable = false, timeout?: number): Promise<unknown> {
    await this.ready();
    return this.transport.send({ method: "POST", path, body, repeatable }, { timeout });
  }
}

interface Walk {
  text: string;
  rewards: number[];
  mutations: MutationType[];
}

function isMessage(told: unknown): boolean {
  return typeof told === "object" && told !== null && "message" in told;
}

/** The same with names as JavaScript writes them. */
function camel<T>(told: unknown): T {
  const entries = Object.entries(told as object);
  return Object.fromEntries(entries.map(([k, v]) => [k.replace(/_(\w)/g, (_, c: string) => c.toUpperCase()), v])) as T;
}
