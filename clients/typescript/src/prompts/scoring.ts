/** Score a prompt by a weighted mean of measures of its text. The weights are fixed, not learned. */

import { classify, type Category } from "./classify.js";
import { MEASURES, METRICS, SCORE } from "./tables.js";
import { count, listItems, regex, sentences, tokens, words } from "./text.js";

const VAGUE = new Set<string>(MEASURES.vague);
const EVIDENCE = Object.entries(MEASURES.evidence).map(([name, signs]) => ({ name, signs: signs.map((s) => regex(s)) }));
const BINDING = regex(MEASURES.binding, "g");
const DETAIL = regex(MEASURES.detail, "g");
const PARTS = MEASURES.parts.map((part) => regex(part));
const FALLBACK = regex(MEASURES.wayOut);
const STEPS = regex(MEASURES.steps, "g");

const GENERAL: Record<(typeof MEASURES.general)[number], (prompt: string) => number> = {
  clear(prompt) {
    const all = words(prompt);
    if (all.length === 0) return 0;
    const mean = all.length / Math.max(1, sentences(prompt).length);
    const vague = all.filter((word) => VAGUE.has(word)).length / all.length;
    return Math.max(0, Math.min(1, 1.25 - mean / 40)) * Math.max(0, 1 - 10 * vague);
  },
  specific: (prompt) => Math.min(1, (count(DETAIL, prompt) + count(BINDING, prompt)) / 6),
  complete: (prompt) => PARTS.filter((part) => part.test(prompt)).length / PARTS.length,
  robust: (prompt) => (FALLBACK.test(prompt) ? 1 : 0),
  ordered: (prompt) => Math.min(1, (listItems(prompt).length + count(STEPS, prompt)) / 4),
  brief: (prompt) => Math.exp(-tokens(prompt) / 150),
};

/** Return all measures of a prompt by name, each from 0 to 1. */
export function measures(prompt: string): Record<string, number> {
  const values: Record<string, number> = {};
  for (const name of MEASURES.general) values[name] = GENERAL[name](prompt);
  for (const { name, signs } of EVIDENCE) {
    values[name] = signs.filter((sign) => sign.test(prompt)).length / signs.length;
  }
  return values;
}

export interface Scored {
  /** 0 to 1. */
  score: number;
  /** Contribution of each measure to the score. */
  breakdown: Record<string, number>;
}

/** Return the score of a prompt with the weights of its category. */
export function score(prompt: string, category: Category = classify(prompt).category): Scored {
  const values = measures(prompt);
  const breakdown: Record<string, number> = {};
  for (const name of METRICS[category]) breakdown[name] = (SCORE.own * (values[name] as number)) / 3 / SCORE.full;
  MEASURES.general.forEach((name, i) => {
    const weight = SCORE.general[category][i] as number;
    breakdown[name] = (breakdown[name] ?? 0) + ((1 - SCORE.own) * weight * (values[name] as number)) / SCORE.full;
  });
  const sum = Object.values(breakdown).reduce((a, b) => a + b, 0);
  return { score: Math.min(1, sum), breakdown };
}
