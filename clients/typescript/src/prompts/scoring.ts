/** How good a prompt is: a weighted mean of what can be seen in it. Nothing is learned, nothing is hidden. */

import { classify, type Category } from "./classify.js";
import { MEASURES, METRICS, SCORE } from "./tables.js";
import { count, listItems, regex, sentences, tokens, words } from "./text.js";

const VAGUE = new Set<string>(MEASURES.vague);
const EVIDENCE = Object.entries(MEASURES.evidence).map(([name, signs]) => ({ name, signs: signs.map((s) => regex(s)) }));
const BINDING = regex(MEASURES.binding, "g");
const DETAIL = regex(MEASURES.detail, "g");
const PARTS = MEASURES.parts.map((part) => regex(part));
const WAY_OUT = regex(MEASURES.wayOut);
const STEPS = regex(MEASURES.steps, "g");

const LOOKS: Record<(typeof MEASURES.general)[number], (prompt: string) => number> = {
  clear(prompt) {
    const spoken = words(prompt);
    if (spoken.length === 0) return 0;
    const mean = spoken.length / Math.max(1, sentences(prompt).length);
    const vague = spoken.filter((word) => VAGUE.has(word)).length / spoken.length;
    return Math.max(0, Math.min(1, 1.25 - mean / 40)) * Math.max(0, 1 - 10 * vague);
  },
  specific: (prompt) => Math.min(1, (count(DETAIL, prompt) + count(BINDING, prompt)) / 6),
  complete: (prompt) => PARTS.filter((part) => part.test(prompt)).length / PARTS.length,
  robust: (prompt) => (WAY_OUT.test(prompt) ? 1 : 0),
  ordered: (prompt) => Math.min(1, (listItems(prompt).length + count(STEPS, prompt)) / 4),
  brief: (prompt) => Math.exp(-tokens(prompt) / 150),
};

/** Everything there is to see in a prompt, each from 0 to 1. */
export function measures(prompt: string): Record<string, number> {
  const seen: Record<string, number> = {};
  for (const name of MEASURES.general) seen[name] = LOOKS[name](prompt);
  for (const { name, signs } of EVIDENCE) {
    seen[name] = signs.filter((sign) => sign.test(prompt)).length / signs.length;
  }
  return seen;
}

export interface Scored {
  /** 0 to 1. */
  score: number;
  /** What each measure adds. */
  breakdown: Record<string, number>;
}

/** The score of a prompt, by what counts in its category. */
export function score(prompt: string, category: Category = classify(prompt).category): Scored {
  const seen = measures(prompt);
  const breakdown: Record<string, number> = {};
  for (const name of METRICS[category]) breakdown[name] = (SCORE.own * (seen[name] as number)) / 3 / SCORE.full;
  MEASURES.general.forEach((name, place) => {
    const weight = SCORE.general[category][place] as number;
    breakdown[name] = (breakdown[name] ?? 0) + ((1 - SCORE.own) * weight * (seen[name] as number)) / SCORE.full;
  });
  const sum = Object.values(breakdown).reduce((a, b) => a + b, 0);
  return { score: Math.min(1, sum), breakdown };
}
