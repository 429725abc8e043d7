/** Which of seven kinds a prompt is, by words that speak for each. */

import { CATEGORIES, SIGNS, TRAITS } from "./tables.js";
import { regex } from "./text.js";

export type Category = (typeof CATEGORIES)[number];

export interface Classified {
  category: Category;
  /** 0.25 where nothing speaks for any category, up to 0.95. */
  confidence: number;
  characteristics: string[];
}

const PATTERNS = CATEGORIES.map((category) => ({ category, signs: SIGNS[category].map((sign) => regex(sign)) }));
const HAS = Object.entries(TRAITS).map(([name, pattern]) => ({ name, pattern: regex(pattern) }));

/** The category that most signs speak for; GENERAL_QA where none does. */
export function classify(prompt: string): Classified {
  let best: Category = "GENERAL_QA";
  let most = 0;
  for (const { category, signs } of PATTERNS) {
    const hits = signs.filter((sign) => sign.test(prompt)).length;
    if (hits > most) [best, most] = [category, hits];
  }
  const characteristics = HAS.filter(({ pattern }) => pattern.test(prompt)).map(({ name }) => name);
  return { category: best, confidence: most === 0 ? 0.25 : Math.min(0.35 + 0.2 * most, 0.95), characteristics };
}
