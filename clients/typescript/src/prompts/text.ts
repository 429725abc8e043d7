/** What a prompt is made of: tokens, sentences, list lines, the verb it begins with. Counted as Python counts. */

import { TEXT, VERB_GROUPS } from "./tables.js";

export type Pattern = readonly [source: string, flags: string];

/** The pattern, to be searched for once. */
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

/** Characters, not UTF-16 units. */
export function size(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}

/** How long a text is: words and marks, which is close to what a model counts. */
export function tokens(text: string): number {
  return count(TOKEN, text);
}

/** How often a global pattern is found. */
export function count(pattern: RegExp, text: string): number {
  return text.match(pattern)?.length ?? 0;
}

export function words(text: string): string[] {
  return (text.match(WORD) ?? []).map((word) => word.toLowerCase());
}

/** Sentences of a text; a list item is one sentence. */
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

/** What stands behind bullets and numbers. */
export function listItems(text: string): string[] {
  return text.split(LINE).flatMap((line) => {
    const found = LIST_LINE.exec(line);
    return found ? [strip(found[1] as string)] : [];
  });
}

/** What kind of thing the text asks for, if it begins with an imperative, politely or not. */
export function verbGroup(text: string): string | undefined {
  LETTERS.lastIndex = 0;
  const verb = LETTERS.exec(withoutPoliteness(text))?.[0].toLowerCase();
  return verb !== undefined && Object.hasOwn(VERB_GROUPS, verb)
    ? VERB_GROUPS[verb as keyof typeof VERB_GROUPS]
    : undefined;
}

/** The text from its imperative on. */
export function withoutPoliteness(text: string): string {
  return text.replace(LEFT, "").replace(POLITE, "");
}

export function strip(text: string): string {
  return stripEnd(text.replace(LEFT, ""));
}

export function stripEnd(text: string): string {
  return text.replace(RIGHT, "");
}

/** With a capital in front. */
export function capital(text: string): string {
  const [first = ""] = text;
  return first.toUpperCase() + text.slice(first.length);
}

/** With a small letter in front. */
export function small(text: string): string {
  const [first = ""] = text;
  return first.toLowerCase() + text.slice(first.length);
}

/** With a mark at its end. */
export function ended(text: string): string {
  const plain = stripEnd(text);
  return plain === "" || ".!?:…؟".includes(plain.slice(-1)) ? plain : `${plain}.`;
}
