/** Client of the eight endpoints of `surefoot serve --compat directive-023`; it starts the server too. Node only. */

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

/** Prompts of an episode that are processed concurrently. */
const CONCURRENT = 16;
/** Milliseconds: the response to an update is sent when its job has finished. */
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

  /** Start a server. A server that already responds at the address is used instead, and `stopServer` leaves it running. */
  startServer(): Promise<void> {
    this.starting ??= this.start().catch((why: unknown) => {
      this.starting = undefined;
      throw why;
    });
    return this.starting;
  }

  /** Stop the server that `startServer` started; resolves when it has exited. */
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
      const response = await this.transport.send({ method: "GET", path: "/health" }, { timeout: 2_000, maxRetries: 0 });
      return (response as { status?: string }).status === "ok";
    } catch (why) {
      if (why instanceof SurefootError) return false;
      throw why;
    }
  }

  /** Return the probability of every mutation without making a decision. */
  async getActionDistribution(embedding: ArrayLike<number>): Promise<Record<MutationType, number>> {
    const response = (await this.post("/get_distribution", { embedding: Array.from(embedding) }, true)) as {
      probabilities: number[];
      mutation_types: MutationType[];
    };
    const pairs = response.mutation_types.map((name, i) => [name, response.probabilities[i] as number]);
    return Object.fromEntries(pairs) as Record<MutationType, number>;
  }

  async selectAction(embedding: ArrayLike<number>, deterministic = false): Promise<RLAction> {
    const response = (await this.post("/select_action", { embedding: Array.from(embedding), deterministic })) as Selected;
    return {
      actionIndex: response.action,
      mutationType: response.mutation_type,
      probability: Math.exp(response.log_prob),
      logProb: response.log_prob,
      value: response.value,
      decisionId: response.decision_id,
    };
  }

  async selectMutation(prompt: string, deterministic = false): Promise<RLAction> {
    return this.selectAction(await this.config.embed(prompt), deterministic);
  }

  async storeExperience(experience: TrainingExperience): Promise<{ stored: boolean; bufferSize: number }> {
    const response = (await this.post("/store_experience", {
      state: Array.from(experience.state),
      action: experience.action,
      reward: experience.reward,
      next_state: Array.from(experience.nextState),
      done: experience.done,
      log_prob: experience.logProb,
      value: experience.value,
      ...(experience.decisionId === undefined ? {} : { decision_id: experience.decisionId }),
    })) as { stored: boolean; buffer_size: number };
    return { stored: response.stored, bufferSize: response.buffer_size };
  }

  /** Compute the reward of a mutation and store the experience. */
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

  /** Learn from the stored experiences; null if there are fewer than `minBufferSize`. */
  async update(): Promise<UpdateResult | null> {
    const response = await this.post("/update", {}, false, UPDATE_TIMEOUT);
    return isMessage(response) ? null : camel<UpdateResult>(response);
  }

  /** Return the statistics; null if no experience was stored yet. */
  async getStats(): Promise<TrainingStats | null> {
    await this.ready();
    const response = await this.transport.send({ method: "GET", path: "/stats" });
    return isMessage(response) ? null : camel<TrainingStats>(response);
  }

  /** Mutate each prompt up to `maxSteps` times, as the policy chooses, and store the results. */
  async trainEpisode(prompts: readonly string[], options: number | { maxSteps?: number } = {}): Promise<EpisodeResult> {
    const maxSteps = typeof options === "number" ? options : (options.maxSteps ?? 5);
    if (prompts.length === 0) throw new SurefootError("prompts is empty; pass at least one prompt");
    const episodes: PromptEpisode[] = [];
    for (let start = 0; start < prompts.length; start += CONCURRENT) {
      episodes.push(...(await Promise.all(prompts.slice(start, start + CONCURRENT).map((p) => this.mutatePrompt(p, maxSteps)))));
    }
    const rewards = episodes.flatMap((episode) => episode.rewards);
    return {
      avgReward: rewards.reduce((a, b) => a + b, 0) / Math.max(1, rewards.length),
      totalSteps: rewards.length,
      mutations: episodes.flatMap((episode) => episode.mutations),
      texts: episodes.map((episode) => episode.text),
    };
  }

  /** Save the policy and return the checkpoint's name, which the server generates if `path` is undefined. */
  async saveCheckpoint(path?: string): Promise<string> {
    const response = await this.post("/save", path === undefined ? {} : { path }, true);
    return (response as { path: string }).path;
  }

  /** Restore a checkpoint; false if there is none of this name. */
  async loadCheckpoint(path: string): Promise<boolean> {
    try {
      return ((await this.post("/load", { path }, true)) as { loaded: boolean }).loaded;
    } catch (why) {
      if (why instanceof NotFound) return false;
      throw why;
    }
  }

  /** Use a custom reward model instead of the lint, which no mutation raises: set one to learn what helps your task. */
  setRewardModel(model: RewardModel | RewardModel["predict"]): void {
    this.rewardModel = typeof model === "function" ? { predict: model } : model;
  }

  /** Return the reward of a mutation: score after it minus score before it, minus the cost of the added tokens. */
  async rewardOf(before: string, after: string, mutationType: string, category: Category): Promise<number> {
    if (before === after) return 0;
    const rate = async (text: string) => {
      if (!this.rewardModel) return score(text).score;
      const rating = await this.rewardModel.predict(before, text, mutationType, category);
      return typeof rating === "number" ? rating : rating.score;
    };
    return (await rate(after)) - (await rate(before)) - TOKEN_COST * (tokens(after) - tokens(before));
  }

  private async mutatePrompt(prompt: string, maxSteps: number): Promise<PromptEpisode> {
    const { category } = classify(prompt);
    const episode: PromptEpisode = { text: prompt, rewards: [], mutations: [] };
    let applicable = allowed(prompt);
    let state = await this.config.embed(prompt);
    for (let step = 0; step < maxSteps && applicable.includes(true); step++) {
      const before = episode.text;
      const action = await this.selectAction(state);
      const { actionIndex, mutationType, logProb, value, decisionId } = action;
      // A mutation that is not applicable leaves the prompt unchanged; its reward is 0.
      if (applicable[actionIndex]) episode.text = mutate(before, actionIndex, { category }).text;
      applicable = allowed(episode.text);
      const nextState = episode.text === before ? state : await this.config.embed(episode.text);
      const reward = await this.rewardOf(before, episode.text, mutationType, category);
      const done = !applicable.includes(true);
      await this.storeExperience({ state, action: actionIndex, reward, nextState, done, logProb, value, decisionId });
      episode.rewards.push(reward);
      episode.mutations.push(mutationType);
      state = nextState;
    }
    return episode;
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
      throw new SurefootError(`the server at ${server.url} does not respond to /health`);
    }
    this.server = server;
  }

  /** Address of the server. */
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

interface PromptEpisode {
  text: string;
  rewards: number[];
  mutations: MutationType[];
}

function isMessage(response: unknown): boolean {
  return typeof response === "object" && response !== null && "message" in response;
}

/** Return the fields under camelCase names. */
function camel<T>(response: unknown): T {
  const entries = Object.entries(response as object);
  return Object.fromEntries(entries.map(([k, v]) => [k.replace(/_(\w)/g, (_, c: string) => c.toUpperCase()), v])) as T;
}
