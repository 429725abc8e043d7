/** What RLInterface takes and gives; names as in the earlier prompt system. */

import type { MutationType } from "./prompts/mutations.js";

export interface RLConfig {
  serverHost: string;
  /** 0 takes a free one. */
  serverPort: number;
  /** The Python that has surefoot installed. Default: $SUREFOOT_PYTHON, or python3 */
  pythonPath: string;
  embeddingDim: number;
  /** Start a server at the first call that needs one. */
  autoStartServer: boolean;
  /** Where the server keeps everything. */
  dataDir: string;
  /** disk: what was stored survives a power cut. process: it survives the end of the server only, and is faster. */
  durability: "disk" | "process";
  /** Experiences without which `update` does nothing. */
  minBufferSize: number;
  /** Milliseconds until the server must listen: it loads torch the first time. */
  startTimeout: number;
  /** Texts as numbers, if the hashing encoder is not what you want. */
  embed: (text: string) => ArrayLike<number> | Promise<ArrayLike<number>>;
}

export interface RLAction {
  actionIndex: number;
  mutationType: MutationType;
  probability: number;
  logProb: number;
  value: number;
  /** Names the decision that an experience belongs to. */
  decisionId: string;
}

export interface TrainingExperience {
  state: ArrayLike<number>;
  action: number;
  reward: number;
  nextState: ArrayLike<number>;
  /** True: the episode is over by itself, not cut short. */
  done: boolean;
  logProb: number;
  value: number;
  decisionId?: string;
}

export interface UpdateResult {
  policyLoss: number;
  valueLoss: number;
  entropy: number;
  approxKl: number;
  clipFraction: number;
  learningRate: number;
  /** Experiences that were learned from. */
  bufferSize: number;
  updateCount: number;
}

export interface TrainingStats {
  totalUpdates: number;
  totalEpisodes: number;
  /** Of the last 100 rewards. */
  avgReward: number;
  maxReward: number;
  avgPolicyLoss: number;
  avgValueLoss: number;
  avgEntropy: number;
  avgKl: number;
}

export interface EpisodeResult {
  /** Of one mutation. */
  avgReward: number;
  totalSteps: number;
  mutations: MutationType[];
  /** The prompts after the episode. */
  texts: string[];
}

/** Score a modified prompt. The reward is the gain over the original score, less the cost of tokens. */
export interface RewardModel {
  predict(original: string, modified: string, mutationType: string, category: string): Rated | Promise<Rated>;
}
export type Rated = number | { score: number };
