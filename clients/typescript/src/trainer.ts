/** Train a mutation policy: episodes and updates in turn, with progress reports. */

import { SurefootError } from "./errors.js";
import type { RLConfig, TrainingStats, UpdateResult } from "./experience.js";
import { RLInterface } from "./interface.js";
import type { MutationType } from "./prompts/mutations.js";

export interface Progress {
  /** Counted from 1. */
  episode: number;
  numEpisodes: number;
  avgReward: number;
  mutations: MutationType[];
  /** Result of the update after this episode; null if there was none. */
  update: UpdateResult | null;
}

export interface TrainOptions {
  numEpisodes?: number;
  episodeLength?: number;
  /** Number of episodes per update. Default: 10 */
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

  /** Run episodes over all prompts with an update every `updateInterval` episodes, and return the statistics. */
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
    const options = typeof first === "number" ? { numEpisodes: first, episodeLength, updateInterval, onProgress } : first;
    const numEpisodes = options.numEpisodes ?? 100;
    const every = options.updateInterval ?? 10;
    const signal = "signal" in options ? options.signal : undefined;
    for (let episode = 1; episode <= numEpisodes; episode++) {
      signal?.throwIfAborted();
      const result = await this.rl.trainEpisode(prompts, options.episodeLength ?? 5);
      this.episodes++;
      const update = episode % every === 0 ? await this.rl.update() : null;
      options.onProgress?.({ episode, numEpisodes, avgReward: result.avgReward, mutations: result.mutations, update });
    }
    const stats = await this.rl.getStats();
    if (!stats) throw new SurefootError("nothing was trained: numEpisodes is 0, or no mutation was possible");
    // The server receives single experiences and does not know how many episodes they belong to.
    return { ...stats, totalEpisodes: Math.max(stats.totalEpisodes, this.episodes) };
  }
}
