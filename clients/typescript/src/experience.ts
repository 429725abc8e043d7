/** Argument and result types of `RLInterface`, with the field names of Directive-023. */

import type { MutationType } from "./prompts/mutations.js";

export interface RLConfig {
  serverHost: string;
  /** 0 chooses a free port. */
  serverPort: number;
  /** Python interpreter with surefoot installed. Default: $SUREFOOT_PYTHON, or python3 */
  pythonPath: string;
  embeddingDim: number;
  /** Start a server at the first call that needs one. */
  autoStartServer: boolean;
  /** Directory in which the server stores its data. */
  dataDir: string;
  /** disk: acknowledged data survives a power failure. process: it survives a crash of the server only; faster. */
  durability: "disk" | "process";
  /** Fewest experiences for an update; with fewer, `update` returns null. */
  minBufferSize: number;
  /** Milliseconds within which the server must be listening; loading torch takes most of it. */
  startTimeout: number;
  /** Turns a text into an embedding. Default: the hashing encoder */
  embed: (text: string) => ArrayLike<number> | Promise<ArrayLike<number>>;
}

export interface RLAction {
  actionIndex: number;
  mutationType: MutationType;
  probability: number;
  logProb: number;
  value: number;
  /** Id of the decision; pass it with the experience. */
  decisionId: string;
}

export interface TrainingExperience {
  state: ArrayLike<number>;
  action: number;
  reward: number;
  nextState: ArrayLike<number>;
  /** True if the episode terminated, false if it continues or was truncated. */
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
  /** Number of experiences that were used. */
  bufferSize: number;
  updateCount: number;
}

export interface TrainingStats {
  totalUpdates: number;
  totalEpisodes: number;
  /** Mean of the last 100 rewards. */
  avgReward: number;
  maxReward: number;
  avgPolicyLoss: number;
  avgValueLoss: number;
  avgEntropy: number;
  avgKl: number;
}

export interface EpisodeResult {
  /** Mean reward per mutation. */
  avgReward: number;
  totalSteps: number;
  mutations: MutationType[];
  /** The prompts after the episode. */
  texts: string[];
}

/** Scores a modified prompt. The reward is the gain over the original's score minus the cost of the added tokens. */
export interface RewardModel {
  predict(original: string, modified: string, mutationType: string, category: string): Rated | Promise<Rated>;
}
export type Rated = number | { score: number };
