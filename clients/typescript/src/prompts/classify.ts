/** Classify a prompt into one of seven categories by patterns in its text. */

import { CATEGORIES, SIGNS, TRAITS } from "./tables.js";
import { regex } from "./text.js";

export type Category = (typeof CATEGORIES)[number];

export interface Classified {
  category: Category;
  /** From 0.25, if no pattern of any category matches, to 0.95. */
  confidence: number;
  characteristics: string[];
}

const PATTERNS = CATEGORIES.map((category) => ({ category, signs: SIGNS[category].map((sign) => regex(sign)) }));
const CHARACTERISTICS = Object.entries(TRAITS).map(([name, pattern]) => ({ name, pattern: regex(pattern) }));

/** Return the category with the most matching patterns; GENERAL_QA if none matches. */
export function classify(prompt: string): Classified {
  let best: Category = "GENERAL_QA";
  let most = 0;
  for (const { category, signs } of PATTERNS) {
    const hits = signs.filter((sign) => sign.test(prompt)).length;
    if (hits > most) [best, most] = [category, hits];
  }
  const characteristics = CHARACTERISTICS.filter(({ pattern }) => pattern.test(prompt)).map(({ name }) => name);
  return { category: best, confidence: most === 0 ? 0.25 : Math.min(0.35 + 0.2 * most, 0.95), characteristics };
}
