/**
 * The five mutations as functions of a text. They rewrite and shorten prompts; those of the Python library keep every word of a
 * prompt.
 */

import { SurefootError } from "../errors.js";
import { classify, type Category } from "./classify.js";
import { sample } from "./random.js";
import { CONSTRAIN, DECOMPOSE, EXPAND, FALLBACK, REDUCE } from "./mutation_tables.js";
import { MUTATIONS } from "./tables.js";
import {
  capital,
  ended,
  listItems,
  regex,
  sentences,
  size,
  small,
  splitLines,
  strip,
  stripEnd,
  verbGroup,
  withoutPoliteness,
} from "./text.js";

export { MUTATIONS };
export type MutationType = (typeof MUTATIONS)[number];
export type Change = "increase" | "decrease" | "neutral";

/** Expected effect of a mutation. */
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
  /** Return false if the mutation was applied already or would not improve the prompt. */
  possible(prompt: string): boolean;
  apply(prompt: string, category: Category, seed: number): Omit<PromptVariation, "mutationType">;
}

/** Apply a mutation, by name or number, to a prompt. The same prompt, mutation and seed give the same text. */
export function mutate(
  prompt: string,
  mutation: MutationType | number,
  options: { category?: Category; seed?: number } = {},
): PromptVariation {
  const mutationType = typeof mutation === "number" ? MUTATIONS[mutation] : mutation;
  if (mutationType === undefined || !Object.hasOwn(ALL, mutationType)) {
    throw new SurefootError(`there is no mutation ${mutation}; the mutations are ${MUTATIONS.join(", ")} (0 to 4)`);
  }
  const category = options.category ?? classify(prompt).category;
  return { mutationType, ...ALL[mutationType].apply(prompt, category, options.seed ?? 0) };
}

/** Return for each of the five mutations whether it is applicable to a prompt. */
export function allowed(prompt: string): boolean[] {
  return MUTATIONS.map((name) => ALL[name].possible(prompt));
}

const CONDITION = regex(FALLBACK.condition);
const HAS_FALLBACK = regex(FALLBACK.has);
const AFTER: Record<string, readonly [string, string]> = FALLBACK.after;

const fallback: Mutation = {
  possible: (prompt) => !HAS_FALLBACK.test(prompt),
  apply(prompt) {
    const group = verbGroup(prompt);
    const [first = "", ...rest] = sentences(prompt);
    let kind: string;
    let text: string;
    if (group !== undefined) {
      const [name, after] = AFTER[group] ?? FALLBACK.otherwise;
      kind = name;
      text = `${ended(`Try to ${small(withoutPoliteness(prompt))}`)} ${after}`;
    } else if (rest.length > 0 && CONDITION.test(prompt)) {
      kind = "conditional-breakdown";
      text = `Try to do this: ${ended(first)} ${ended(rest.join(" "))} If a condition cannot be met, say which and go on without it.`;
    } else {
      kind = "general-wrapper";
      text = `Try to do the following: ${ended(strip(prompt))} If you run into difficulties, say so and give what you have.`;
    }
    return {
      text,
      changeDescription: "asks for an attempt and says what to do where it fails",
      expectedImpact: { quality: "neutral", cost: "increase", latency: "neutral", reliability: "increase" },
      metadata: { transformationType: kind, ...lengths(prompt, text), lengthIncrease: size(text) - size(prompt) },
    };
  },
};

const AGAIN = regex(REDUCE.again);
const FILLERS = regex(REDUCE.fillers, "g");
const REQUESTS = regex(REDUCE.requests);
const LONG_EXAMPLE = regex(REDUCE.longExample, "g");
const ASKS = regex(REDUCE.asks);
const BINDS = regex(REDUCE.binds);
const LINES = regex(REDUCE.lines, "g");

function reduced(prompt: string): string {
  const lines = (prompt.match(LINES) ?? []).filter((part) => !AGAIN.test(strip(part)));
  let text = strip(lines.join("")).replace(LONG_EXAMPLE, "(see examples)");
  text = tidy(capital(text.replace(REQUESTS, "")).replace(FILLERS, ""));
  if (size(text) > 100 && size(text) > 0.9 * size(prompt) && !text.includes("\n")) {
    const needed = sentences(text).filter((s) => ASKS.test(s) || BINDS.test(s) || size(s) < 30);
    const shorter = tidy(needed.join(" "));
    if (size(shorter) >= REDUCE.shortest) text = shorter;
  }
  text = capital(text);
  return REDUCE.shortest <= size(text) && size(text) < size(prompt) ? text : prompt;
}

function tidy(text: string): string {
  return strip(text.replace(/[ \t]+/g, " ").replace(/ +([,.;:!?])/g, "$1").replace(/\n{3,}/g, "\n\n"));
}

const reduce: Mutation = {
  possible: (prompt) => size(prompt) > 0 && size(reduced(prompt)) <= (1 - REDUCE.worth) * size(prompt),
  apply(prompt) {
    const text = reduced(prompt);
    const percent = 100 * (1 - size(text) / Math.max(size(prompt), 1));
    return {
      text,
      changeDescription: `leaves out ${percent.toFixed(0)} % that asks for nothing`,
      expectedImpact: { quality: "neutral", cost: "decrease", latency: "decrease", reliability: "neutral" },
      metadata: { ...lengths(prompt, text), reductionPercent: percent, targetReductionAchieved: percent >= 30 },
    };
  },
};

const TERMS = EXPAND.terms.map(([term, pattern, about]) => ({ term, pattern: regex(pattern), about }));
const STEPS = EXPAND.steps.map(([pattern, steps]) => ({ pattern: regex(pattern), steps: steps as readonly string[] }));
const EXAMPLES = EXPAND.examples.map(([pattern, example]) => ({ pattern: regex(pattern), example }));
const CRITERIA = EXPAND.criteria.map(([pattern, criteria]) => ({ pattern: regex(pattern), criteria: criteria as readonly string[] }));
const HAS_EXAMPLE = regex(EXPAND.hasExample);

const expand: Mutation = {
  possible: (prompt) => !EXPAND.sections.some((section) => prompt.includes(section)),
  apply(prompt) {
    const added: [string, string[]][] = [];
    const known = TERMS.filter(({ pattern }) => pattern.test(prompt)).slice(0, EXPAND.mostTerms);
    if (known.length > 0) added.push(["Technical Context:", known.map(({ term, about }) => `${term}: ${about}`)]);
    const steps = STEPS.find(({ pattern }) => pattern.test(prompt))?.steps;
    if (steps) added.push(["Detailed Steps:", steps.map((step, i) => `${i + 1}. ${step}`)]);
    const example = HAS_EXAMPLE.test(prompt) ? undefined : EXAMPLES.find(({ pattern }) => pattern.test(prompt))?.example;
    if (example) added.push(["Example:", [example]]);
    const special = CRITERIA.find(({ pattern }) => pattern.test(prompt))?.criteria ?? [];
    const criteria = ["everything asked for is answered", "nothing is made up", ...special].slice(0, 4);
    added.push(["Success Criteria:", criteria.map((each) => `- ${each}`)]);
    const text = stripEnd(prompt) + added.map(([title, lines]) => `\n\n${title}\n${lines.join("\n")}`).join("");
    return {
      text,
      changeDescription: `adds ${added.map(([title]) => title.slice(0, -1).toLowerCase()).join(", ")}`,
      expectedImpact: { quality: "increase", cost: "increase", latency: "increase", reliability: "increase" },
      metadata: { ...lengths(prompt, text), sections: added.map(([title]) => title.slice(0, -1)) },
    };
  },
};

const BELOW = regex(CONSTRAIN.below);
const LIBRARY: Record<Category, readonly string[]> = CONSTRAIN.library;

function unused(prompt: string, category: Category): string[] {
  return LIBRARY[category].filter((constraint) => !prompt.includes(constraint));
}

const constrain: Mutation = {
  possible(prompt) {
    const present = Object.values(LIBRARY).flat().filter((constraint) => prompt.includes(constraint)).length;
    const left = unused(prompt, classify(prompt).category).length;
    return present + CONSTRAIN.added <= CONSTRAIN.most && left >= CONSTRAIN.added;
  },
  apply(prompt, category, seed) {
    const left = unused(prompt, category);
    if (left.length < CONSTRAIN.added) throw new SurefootError("the prompt already contains all constraints of its category");
    const chosen = sample(`${seed}:${prompt}`, left, CONSTRAIN.added);
    const lines = chosen.map((constraint) => `- ${constraint}`).join("\n");
    const plain = stripEnd(prompt);
    const text = BELOW.test(plain) ? `${plain}\n${lines}` : `${plain}\n\n${CONSTRAIN.title}\n${lines}`;
    return {
      text,
      changeDescription: `adds ${CONSTRAIN.added} constraints: ${chosen.join("; ")}`,
      expectedImpact: { quality: "increase", cost: "increase", latency: "neutral", reliability: "increase" },
      metadata: { ...lengths(prompt, text), constraints: chosen, category },
    };
  },
};

const SPLITS = (["next", "and", "with"] as const).map((name) => ({ name, pattern: regex(DECOMPOSE[name]) }));

interface Parts {
  intro: string;
  tasks: string[];
  rest: string;
}

const SECTION = regex(DECOMPOSE.section);

/** Split a prompt into an introduction, its tasks and the rest, without losing text. */
function splitTasks(prompt: string): Parts {
  const section = SECTION.exec(prompt);
  const request = section ? prompt.slice(0, section.index) : prompt;
  const rest = section ? strip(prompt.slice(section.index)) : "";
  const lines = splitLines(strip(request));
  const first = lines.findIndex((line) => listItems(line).length > 0);
  const items = listItems(request);
  if (items.length >= 2) {
    const below = strip(lines.slice(first).filter((line) => listItems(line).length === 0).join("\n"));
    const intro = strip(lines.slice(0, first).join("\n"));
    return { intro, tasks: items.map(capital), rest: [below, rest].filter(Boolean).join("\n\n") };
  }
  for (const { name, pattern } of SPLITS) {
    const parts = strip(request).split(pattern).map((part) => part.replace(/^[ .\n]+|[ .\n]+$/g, ""));
    if (name === "with") {
      const [head = "", second = ""] = parts;
      if (parts.length === 2 && size(second) > DECOMPOSE.shortest)
        return { intro: "", tasks: [capital(head), `Implement ${second}`], rest };
    } else if (parts.length >= 2 && parts.length <= DECOMPOSE.most && parts.every((p) => size(p) > DECOMPOSE.shortest)) {
      return { intro: "", tasks: parts.map(capital), rest };
    }
  }
  return { intro: "", tasks: [], rest };
}

const decompose: Mutation = {
  possible: (prompt) => !prompt.includes(DECOMPOSE.done) && splitTasks(prompt).tasks.length >= 2,
  apply(prompt) {
    const { intro, tasks, rest } = splitTasks(prompt);
    const numbered = (texts: string[]) => texts.map((task, i) => `${i + 1}. ${task}`).join("\n");
    const middle = `${DECOMPOSE.done}\n${numbered(tasks.map(ended))}\nFinish each step before the next, and join the results into one answer.`;
    const steps = [intro, middle, rest].filter(Boolean).join("\n\n");
    const joined = `Join these parts into one whole:\n${numbered(tasks)}\nSee that what one part gives is what the next one takes.`;
    const text = tasks.length > 0 ? steps : prompt;
    return {
      text,
      changeDescription: tasks.length > 0 ? `splits the prompt into ${tasks.length} steps` : "is simple already",
      expectedImpact: { quality: "increase", cost: "increase", latency: "increase", reliability: "increase" },
      metadata: {
        ...lengths(prompt, steps),
        subtasks: tasks.map(ended),
        orchestrator: tasks.length > 0 ? joined : "",
      },
    };
  },
};

const ALL: Record<MutationType, Mutation> = {
  "try-catch-style": fallback,
  "context-reduction": reduce,
  expansion: expand,
  "constraint-addition": constrain,
  "task-decomposition": decompose,
};

function lengths(before: string, after: string): { originalLength: number; newLength: number } {
  return { originalLength: size(before), newLength: size(after) };
}
