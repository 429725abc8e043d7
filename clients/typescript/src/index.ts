export { Surefoot, type ActInput, type CandidateInput, type DecisionInput, type PromoteOptions } from "./client.js";
export * from "./errors.js";
export { HashingEncoder } from "./encoder.js";
export { ExportedPolicy, exportPolicy, type Choice } from "./policy.js";
export { classify, type Category, type Classified } from "./prompts/classify.js";
export {
  MUTATIONS,
  allowed,
  mutate,
  type Change,
  type Impact,
  type MutationType,
  type PromptVariation,
} from "./prompts/mutations.js";
export { score, type Scored } from "./prompts/scoring.js";
export { tokens } from "./prompts/text.js";
export { readSafetensors, writeSafetensors, type Tensor, type Weights } from "./safetensors.js";
export type * from "./schema.js";
export type { CallOptions, Fetch, Options } from "./transport.js";
