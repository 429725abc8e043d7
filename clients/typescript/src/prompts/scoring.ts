/** The lint of the Python library: how specific a prompt is about its own task. Nothing is learned, nothing is hidden. */

import { LINT } from "./tables.js";
import { count, regex, sentences, withoutPoliteness } from "./text.js";

const [REQUESTS, QUESTIONS, COMMON, VAGUE, GENERIC, ASKING] = (
  ["requests", "questions", "common", "vague", "generic", "asking"] as const
).map((name) => new Set<string>(LINT[name].split(" "))) as [Set<string>, Set<string>, Set<string>, Set<string>, Set<string>, Set<string>];
const find = (name: Exclude<keyof typeof LINT.patterns, "stems">, flags = "") => regex(LINT.patterns[name], flags);
const WORD = find("word", "g");
const FIRST_WORD = find("word", "y");
const QUOTED = find("quoted", "g");
const NUMBER = find("number", "g");
const IDENTIFIER = find("identifier", "g");
const REFERS = find("refers");
const POINTS_DOWN = find("pointsDown");
const MARKER = find("marker");
const WANTED = find("wanted");
const OPENING = find("opening", "y");
const BROKEN = find("broken", "g");
const PERSONA = find("persona", "y");
const LOWER = find("lower", "g");
const UPPER = find("upper", "g");
const POSSESSIVE = find("possessive");
const STEMS = LINT.patterns.stems.map(([pattern, instead]) => ({ ending: regex(pattern), instead }));
const BREAKS = find("breaks", "g");

export interface Scored {
  /** 0 to 1. */
  score: number;
  /** What each term adds. */
  breakdown: Record<string, number>;
}

/** The lint score of a prompt. */
export function score(prompt: string): Scored {
  const parts = sentences(prompt.replace(QUOTED, (quotation) => quotation.replace(BREAKS, "\u00a0"))).map((sentence) =>
    sentence.replace(MARKER, ""),
  );
  if (parts.length === 0) return { score: 0, breakdown: {} };
  const sizes = parts.map((part) => content(part).size);
  const rank = (i: number) => ((sizes[i] as number) > 0 && asks(parts[i] as string) ? 1e6 : 0) + (sizes[i] as number);
  const request = parts.reduce((best, _, i) => (rank(i) > rank(best) ? i : best), 0);
  const little = (sizes[request] as number) < 4;
  const begins = parts.findIndex((part, i) => ((sizes[i] as number) > 0 || little) && !at(PERSONA, part));
  const first = begins < 0 ? request : begins;
  const related = relatedTo(parts, request);
  const whole = scored(prompt, parts, related, request);
  if (related.has(first)) return whole;
  const other = scored(prompt, parts, relatedTo(parts, first), first);
  return other.score < whole.score ? other : whole;
}

function scored(prompt: string, parts: readonly string[], related: ReadonlySet<number>, place: number): Scored {
  const texts = parts.filter((_, i) => related.has(i));
  const words = new Set(texts.flatMap((part) => [...content(part)]));
  const details = new Set(texts.flatMap(exact));
  const order = Math.min(mixedCase(prompt) ? 0.2 : 1, ...texts.map(readable));
  const request = parts[place] as string;
  const present = !POINTS_DOWN.test(request) || hasMaterial(prompt, request);
  const vague = texts.some((part) => plainWords(part).some((word) => VAGUE.has(word)));
  const subject = order * (texts.some(asks) ? 1 : 0.4) * (1 - Math.exp(-words.size / 4));
  const terms = [0.35, 0.35 * (1 - Math.exp(-details.size / 2)), present ? 0.15 : 0, vague ? 0 : 0.15];
  const breakdown: Record<string, number> = {};
  LINT.terms.forEach((name, i) => (breakdown[name] = subject * (terms[i] as number)));
  return { score: Object.values(breakdown).reduce((a, b) => a + b, 0), breakdown };
}

/** Whether a sentence begins with a verb that asks, states that something is wanted, or is a question. */
function asks(sentence: string): boolean {
  const plain = withoutPoliteness(withoutPoliteness(sentence)).replace(/^["'“([]+/, "");
  if (WANTED.test(plain)) return true;
  const comma = plain.indexOf(", ");
  const start = at(OPENING, plain) ? (comma < 0 ? "" : plain.slice(comma + 2)) : plain;
  const word = at(FIRST_WORD, start)?.toLowerCase() ?? "";
  if (REQUESTS.has(word)) return true;
  return QUESTIONS.has(word) && (sentence.trimEnd().endsWith("?") || ["wh", "ho"].includes(word.slice(0, 2)));
}

/** What a sticky pattern matches at the start of a text. */
function at(pattern: RegExp, text: string): string | undefined {
  pattern.lastIndex = 0;
  return pattern.exec(text)?.[0];
}

function content(sentence: string): Set<string> {
  return new Set(plainWords(sentence).filter((word) => !empty(word)).map(stem));
}

function readable(sentence: string): number {
  const words = plainWords(sentence);
  if (words.length < 5) return 1;
  const broken = count(BROKEN, sentence);
  const small = words.filter((word) => COMMON.has(word)).length / words.length;
  const bare = words.length >= 8 && small < 0.12 && sentence.split(",").length - 1 < words.length / 6;
  return bare || broken >= 2 || broken > words.length / 12 ? 0.2 : 1;
}

function mixedCase(prompt: string): boolean {
  const [lower, upper] = [count(LOWER, prompt), count(UPPER, prompt)];
  return lower >= 2 && upper >= 1 && lower > upper / 2;
}

function relatedTo(parts: readonly string[], place: number): Set<number> {
  const request = parts[place] as string;
  const refers = request.trimEnd().endsWith("?") || REFERS.test(request);
  const related = new Set([place]);
  parts.slice(0, place).forEach((part, i) => {
    if (refers && !asks(part) && !at(PERSONA, part) && content(part).size >= 2) related.add(i);
  });
  const known = new Set([...related].flatMap((i) => [...content(parts[i] as string)]));
  parts.forEach((part, i) => {
    const own = content(part);
    if (![...own].some((word) => known.has(word))) return;
    related.add(i);
    own.forEach((word) => known.add(word));
  });
  return related;
}

function exact(part: string): string[] {
  const rest = part.replace(QUOTED, " ");
  const names = (rest.match(WORD) ?? []).slice(1).filter((word) => {
    const [initial = ""] = word;
    return initial !== initial.toLowerCase() && !empty(word.toLowerCase());
  });
  return [part.match(QUOTED), rest.match(NUMBER), rest.match(IDENTIFIER), names].flatMap((found) => [...(found ?? [])]);
}

function hasMaterial(prompt: string, request: string): boolean {
  if (prompt.search(QUOTED) >= 0 || request.split(",").length > 2) return true;
  if (request.includes(":") && !request.trimEnd().endsWith(":")) return true;
  const others = sentences(prompt).filter((part) => !part.includes(request) && !request.includes(part) && !asks(part));
  return others.some((part) => content(part).size >= 3) || content(request).size >= 6;
}

function plainWords(sentence: string): string[] {
  return (sentence.match(WORD) ?? []).map((word) => word.toLowerCase());
}

function empty(word: string): boolean {
  const short = stem(word);
  const known = COMMON.has(word) || VAGUE.has(word) || REQUESTS.has(word);
  return [...word].length < 3 || known || GENERIC.has(short) || ASKING.has(short);
}

function stem(word: string): string {
  let text = word.replace(POSSESSIVE, "");
  for (const { ending, instead } of STEMS) {
    const shorter = text.replace(ending, instead);
    if ([...shorter].length >= 3) text = shorter;
  }
  return text;
}
