/** Learn which mutations improve prompts. Node only, because it starts a server. */

export type * from "./experience.js";
export { RLInterface } from "./interface.js";
export { RLTrainer, type Progress, type TrainOptions } from "./trainer.js";
export { MUTATIONS, type MutationType, type PromptVariation } from "./prompts/mutations.js";
export type { Category } from "./prompts/classify.js";
