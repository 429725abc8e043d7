/** Episodes and updates, one after the other, with progress. */

import { SurefootError } from "./errors.js";
import type { RLConfig, TrainingStats, UpdateResult } from "./experience.js";
import { RLInterface } from "./interface.js";
import type { MutationType } from "./prompts/mutations.js";

export interface Progress {
  /** From 1. */
  episode: number;
  numEpisodes: number;
  avgReward: number;
  mutations: MutationType[];
  /** Where this episode ended with an update. */
  update: UpdateResult | null;
}

export interface TrainOptions {
  numEpisodes?: number;
  episodeLength?: number;
  /** Episodes between updates. */
  updateInterval?: number;
  onProgress?: ((progress: Progress) => void) | undefined;
  signal?: AbortSignal | undefined;
}

export class RLTrainer {
  private readonly rl: RLInterface;
  private episodes = 0;

  constructor(config: Partial<RLConfig> | RLInterface = {}) {
    this.rl = config instanceof RLInterface ? config : new RLInterface(config);
  }

  start(): Promise<void> {
    return this.rl.startServer();
  }

  stop(): Promise<void> {
    return this.rl.stopServer();
  }

  getInterface(): RLInterface {
    return this.rl;
  }

  /** Episodes over all prompts, an update every few of them; how it went. */
  train(prompts: readonly string[], options?: TrainOptions): Promise<TrainingStats>;
  train(
    prompts: readonly string[],
    numEpisodes?: number,
    episodeLength?: number,
    updateInterval?: number,
    onProgress?: (progress: Progress) => void,
  ): Promise<TrainingStats>;
  async train(
    prompts: readonly string[],
    first: number | TrainOptions = {},
    episodeLength?: number,
    updateInterval?: number,
    onProgress?: (progress: Progress) => void,
  ): Promise<TrainingStats> {
    const given = typeof first === "number" ? { numEpisodes: first, episodeLength, updateInterval, onProgress } : first;
    const numEpisodes = given.numEpisodes ?? 100;
    const every = given.updateInterval ?? 10;
    const signal = "signal" in given ? given.signal : undefined;
    for (let episode = 1; episode <= numEpisodes; episode++) {
      signal?.throwIfAborted();
      const result = await this.rl.trainEpisode(prompts, given.episodeLength ?? 5);
      this.episodes++;
      const update = episode % every === 0 ? await this.rl.update() : null;
      given.onProgress?.({ episode, numEpisodes, avgReward: result.avgReward, mutations: result.mutations, update });
    }
    const stats = await this.rl.getStats();
    if (!stats) throw new SurefootError("nothing was trained: numEpisodes is 0, or no mutation was possible");
    // The server sees single experiences; how many episodes they make is known here.
    return { ...stats, totalEpisodes: Math.max(stats.totalEpisodes, this.episodes) };
  }
}
