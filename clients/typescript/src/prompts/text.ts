/** The parts of a prompt (tokens, sentences, list items, leading verb), with the same results as the Python implementation. */

import { TEXT, VERB_GROUPS } from "./tables.js";

export type Pattern = readonly [source: string, flags: string];

/** Compile a pattern, optionally with more flags. */
export function regex([source, flags]: Pattern, more = ""): RegExp {
  return new RegExp(source, flags + more);
}

const TOKEN = regex(TEXT.token, "g");
const END = regex(TEXT.end);
const LIST_LINE = regex(TEXT.listLine);
const POLITE = regex(TEXT.polite);
const WORD = regex(TEXT.word, "g");
const LETTERS = regex(TEXT.letters, "y");
const LEFT = new RegExp(`^${TEXT.space[0]}`, "u");
const RIGHT = new RegExp(`${TEXT.space[0]}$`, "u");
const LINE = /\r\n|[\n\v\f\r\x1c-\x1e\x85\u2028\u2029]/;

/** Return the length in code points, as Python's `len` does, not in UTF-16 units. */
export function size(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}

/** Return the number of words and punctuation marks, which is close to a language model's token count. */
export function tokens(text: string): number {
  return count(TOKEN, text);
}

/** Return the number of matches of a pattern with the flag `g`. */
export function count(pattern: RegExp, text: string): number {
  return text.match(pattern)?.length ?? 0;
}

export function words(text: string): string[] {
  return (text.match(WORD) ?? []).map((word) => word.toLowerCase());
}

/** Return the sentences of a text; a list item is one sentence. */
export function sentences(text: string): string[] {
  return text
    .split(LINE)
    .filter((line) => strip(line) !== "")
    .flatMap((line) => (LIST_LINE.test(line) ? [strip(line)] : strip(line).split(END).map(strip)))
    .filter((sentence) => sentence !== "");
}

export function splitLines(text: string): string[] {
  const lines = text.split(LINE);
  if (lines[lines.length - 1] === "") lines.pop();
  return lines;
}

/** Return the list items of a text without their bullets and numbers. */
export function listItems(text: string): string[] {
  return text.split(LINE).flatMap((line) => {
    const match = LIST_LINE.exec(line);
    return match ? [strip(match[1] as string)] : [];
  });
}

/** Return the group of the leading imperative verb, ignoring polite phrases; undefined if the text has none. */
export function verbGroup(text: string): string | undefined {
  LETTERS.lastIndex = 0;
  const verb = LETTERS.exec(withoutPoliteness(text))?.[0].toLowerCase();
  return verb !== undefined && Object.hasOwn(VERB_GROUPS, verb)
    ? VERB_GROUPS[verb as keyof typeof VERB_GROUPS]
    : undefined;
}

/** Return the text without polite phrases before its imperative. */
export function withoutPoliteness(text: string): string {
  return text.replace(LEFT, "").replace(POLITE, "");
}

export function strip(text: string): string {
  return stripEnd(text.replace(LEFT, ""));
}

export function stripEnd(text: string): string {
  return text.replace(RIGHT, "");
}

/** Return the text with its first letter in upper case. */
export function capital(text: string): string {
  const [first = ""] = text;
  return first.toUpperCase() + text.slice(first.length);
}

/** Return the text with its first letter in lower case. */
export function small(text: string): string {
  const [first = ""] = text;
  return first.toLowerCase() + text.slice(first.length);
}

/** Return the text with a full stop at its end, unless it ends with a punctuation mark. */
export function ended(text: string): string {
  const plain = stripEnd(text);
  return plain === "" || ".!?:…؟".includes(plain.slice(-1)) ? plain : `${plain}.`;
}
