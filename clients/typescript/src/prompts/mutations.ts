/**
 * The five mutations: text in, text out. They add to a prompt and lose no word of it; `context-reduction`, which removes
 * politeness and fillers, is allowed only with `allowCut`.
 */

import { SurefootError } from "../errors.js";
import { classify, type Category } from "./classify.js";
import { KINDS, MUTATION_TABLES as TABLES, MUTATIONS } from "./tables.js";
import { capital, ended, listItems, regex, size, strip, stripEnd, verbGroup, type Pattern } from "./text.js";

export { MUTATIONS };
export type MutationType = (typeof MUTATIONS)[number];
export type Change = "increase" | "decrease" | "neutral";

/** Which way a mutation is expected to move what matters. */
export interface Impact {
  quality: Change;
  cost: Change;
  latency: Change;
  reliability: Change;
}

/** A prompt after one mutation. */
export interface PromptVariation {
  text: string;
  mutationType: MutationType;
  changeDescription: string;
  expectedImpact: Impact;
  metadata: Record<string, unknown>;
}

interface Mutation {
  /** False if the mutation would change nothing, repeat itself or contradict the prompt. */
  possible(prompt: string): boolean;
  /** The new text, what changed, and more metadata. */
  apply(prompt: string): { text: string; about: string; more?: Record<string, unknown> };
  impact: Partial<Impact>;
}

/** The prompt after a mutation, by name or number. The same prompt and mutation give the same text. */
export function mutate(
  prompt: string,
  mutation: MutationType | number,
  options: { category?: Category } = {},
): PromptVariation {
  const mutationType = typeof mutation === "number" ? MUTATIONS[mutation] : mutation;
  if (mutationType === undefined || !Object.hasOwn(ALL, mutationType)) {
    throw new SurefootError(`there is no mutation ${mutation}; there are ${MUTATIONS.join(", ")} (0 to 4)`);
  }
  const { text, about, more = {} } = ALL[mutationType].apply(prompt);
  const category = options.category ?? classify(prompt).category;
  return {
    text,
    mutationType,
    changeDescription: about,
    expectedImpact: { quality: "neutral", cost: "neutral", latency: "neutral", reliability: "neutral", ...ALL[mutationType].impact },
    metadata: { originalLength: size(prompt), newLength: size(text), category, ...more },
  };
}

/** Which of the five make sense for a prompt, in the order of their numbers. */
export function allowed(prompt: string, options: { allowCut?: boolean } = {}): boolean[] {
  // In an unclosed code block an added line would be code.
  const usable = strip(prompt) !== "" && prompt.split("```").length % 2 === 1;
  return MUTATIONS.map(
    (name) => usable && (name !== "context-reduction" || options.allowCut === true) && ALL[name].possible(prompt),
  );
}

const CUE = regex(TABLES.cue);
const STRICT = regex(TABLES.strict);
const HAS_FALLBACK = regex(TABLES.hasFallback);
const FILLERS = regex(TABLES.fillers, "g");
const REQUESTS = regex(TABLES.requests);
const PROTECTED = regex(TABLES.protected, "g");
const ORDER = regex(TABLES.order);
const LISTED = regex(TABLES.listed);
const FALLBACKS: Record<string, readonly [string, string]> = TABLES.fallbacks;

/** The prompt with a paragraph at its end, above a line that waits for the answer. */
function append(prompt: string, addition: string): string {
  const text = stripEnd(prompt);
  const cue = CUE.exec(text);
  if (cue === null || strip(text.slice(0, cue.index)) === "") return `${text}\n\n${addition}`;
  return `${stripEnd(text.slice(0, cue.index))}\n\n${addition}\n\n${strip(cue[0])}`;
}

/** True if the form of the answer is free: a question and a prompt that fixes its answer get no requirements. */
function open(prompt: string): boolean {
  return !STRICT.test(prompt) && !stripEnd(prompt).endsWith("?");
}

interface Requirement {
  text: string;
  present: RegExp;
}
const compiled = (entries: readonly (readonly [string, Pattern])[]): Requirement[] =>
  entries.map(([text, pattern]) => ({ text, present: regex(pattern) }));
const WORK = KINDS.map(({ sign, constraints, criteria }) => ({
  sign: regex(sign),
  constraints: compiled(constraints),
  criteria: compiled(criteria),
}));

/** What prompts of this kind of work should say and this one does not. */
function missing(what: "constraints" | "criteria", prompt: string): string[] {
  const [head = ""] = strip(prompt).split("\n\n");
  const kind = WORK.find(({ sign }) => sign.test(head));
  return kind && open(prompt) ? kind[what].filter(({ present }) => !present.test(prompt)).map(({ text }) => text) : [];
}

const bullets = (texts: readonly string[]) => texts.map((text) => `- ${text}`).join("\n");

function reduced(prompt: string): string {
  let text = "";
  let place = 0;
  for (const match of prompt.matchAll(PROTECTED)) {
    text += prompt.slice(place, match.index).replace(FILLERS, "") + match[0];
    place = match.index + match[0].length;
  }
  text += prompt.slice(place).replace(FILLERS, "");
  text = stripEnd(capital(strip(text).replace(REQUESTS, "")));
  return size(text) >= TABLES.shortest && size(text) < size(strip(prompt)) ? text : prompt;
}

/** The tasks of a prompt: list items or sentences in order, all of which begin with an imperative. */
function tasks(prompt: string): string[] {
  const items = listItems(prompt);
  if (items.length >= 2) return items.every((item) => verbGroup(item) !== undefined) ? items : [];
  const body = strip(prompt);
  const pieces = body.includes("\n") ? [] : body.split(/(?<=[.;])\s+/);
  const ordered = pieces.some((piece) => ORDER.test(piece));
  const asks = pieces.every((piece) => verbGroup(piece.replace(ORDER, "")) !== undefined);
  return pieces.length >= 2 && pieces.length <= TABLES.mostTasks && ordered && asks ? pieces : [];
}

const numbered = (pieces: readonly string[]) => pieces.map((piece, i) => `${i + 1}. ${piece}`).join("\n");

const ALL: Record<MutationType, Mutation> = {
  "try-catch-style": {
    possible: (prompt) => open(prompt) && !HAS_FALLBACK.test(prompt),
    apply(prompt) {
      const [kind, text] = FALLBACKS[verbGroup(prompt) ?? ""] ?? TABLES.otherFallback;
      return {
        text: append(prompt, text),
        about: "says what to do where the request cannot be met",
        more: { transformationType: kind },
      };
    },
    impact: { cost: "increase", reliability: "increase" },
  },
  "context-reduction": {
    possible: (prompt) => size(reduced(prompt)) <= (1 - TABLES.smallestSaving) * size(strip(prompt)),
    apply(prompt) {
      const text = reduced(prompt);
      const percent = 100 * (1 - size(text) / Math.max(size(prompt), 1));
      return {
        text,
        about: `leaves out ${percent.toFixed(0)} % that asks for nothing`,
        more: { reductionPercent: percent, targetReductionAchieved: percent >= 30 },
      };
    },
    impact: { cost: "decrease", latency: "decrease" },
  },
  expansion: {
    possible: (prompt) => !prompt.includes(TABLES.criteriaTitle) && missing("criteria", prompt).length > 0,
    apply(prompt) {
      const criteria = missing("criteria", prompt);
      return {
        text: criteria.length > 0 ? append(prompt, `${TABLES.criteriaTitle}\n${bullets(criteria)}`) : prompt,
        about: criteria.length > 0 ? `adds what a complete answer has: ${criteria.join("; ")}` : "has nothing to add",
        more: { sections: criteria.length > 0 ? [TABLES.criteriaTitle.slice(0, -1)] : [] },
      };
    },
    impact: { quality: "increase", cost: "increase", latency: "increase", reliability: "increase" },
  },
  "constraint-addition": {
    possible(prompt) {
      const given = WORK.flatMap(({ constraints }) => constraints).filter(({ text }) => prompt.includes(text)).length;
      return given + TABLES.addedConstraints <= TABLES.mostConstraints && missing("constraints", prompt).length > 0;
    },
    apply(prompt) {
      const chosen = missing("constraints", prompt).slice(0, TABLES.addedConstraints);
      const lines = bullets(chosen);
      const text = LISTED.test(stripEnd(prompt))
        ? `${stripEnd(prompt)}\n${lines}`
        : append(prompt, `${TABLES.constraintsTitle}\n${lines}`);
      return {
        text: chosen.length > 0 ? text : prompt,
        about: chosen.length > 0 ? `adds constraints: ${chosen.join("; ")}` : "has nothing to add",
        more: { constraints: chosen },
      };
    },
    impact: { quality: "increase", cost: "increase", reliability: "increase" },
  },
  "task-decomposition": {
    possible: (prompt) =>
      tasks(prompt).length > 1 && !prompt.includes(TABLES.itemsLine) && !prompt.includes(TABLES.stepsTitle),
    apply(prompt) {
      const pieces = tasks(prompt);
      const steps = `${TABLES.stepsTitle}\n${numbered(pieces.map(capital))}`;
      const text = listItems(prompt).length > 0 ? append(prompt, TABLES.itemsLine) : steps;
      const joined = `Join the results of these tasks into one answer:\n${numbered(pieces.map(ended))}`;
      return {
        text: pieces.length > 0 ? text : prompt,
        about: pieces.length > 0 ? `asks for ${pieces.length} steps in order` : "is simple already",
        more: { subtasks: pieces.map(ended), orchestrator: pieces.length > 0 ? joined : "" },
      };
    },
    impact: { quality: "increase", cost: "increase", latency: "increase", reliability: "increase" },
  },
};
