/** The service's hashing encoder, equal to the last digit: turns texts into unit vectors. It compares words, not meanings. */

import { SurefootError } from "./errors.js";

const WORD = /[\p{L}\p{N}]+/gu;
const COMMON = new Set(
  ("a an the i my me you your it its is are was be been do does did have has had will would can could should to of in on " +
    "for from with at by and or not this that there what when where which who why how if as so but please").split(" "),
);
const f = Math.fround;

/** Hashes words, pairs of words and letter trigrams into a vector of length `dim`. */
export class HashingEncoder {
  readonly name: string;

  constructor(readonly dim: number = 384) {
    if (!Number.isInteger(dim) || dim < 8) {
      throw new SurefootError(`dim is ${dim}; the hashing encoder needs an integer of at least 8`);
    }
    this.name = `hashing-1-${dim}`;
  }

  /** Return a vector [dim] of norm 1; all zeros if the text contains no word. */
  encode(text: string): Float32Array {
    const row = new Float32Array(this.dim);
    for (const [feature, weight] of features(text)) {
      const code = crc32(UTF8.encode(feature));
      const index = (code >>> 1) % this.dim;
      row[index] = f((row[index] as number) + f(code & 1 ? weight : -weight));
    }
    const squares = row.map((x) => f(x * x));
    const length = f(Math.sqrt(pairwiseSum(squares, 0, squares.length)));
    return length > 0 ? row.map((x) => f(x / length)) : row;
  }
}

const UTF8 = new TextEncoder();

function* features(text: string): Generator<[string, number]> {
  const words = (text.replace(/_/g, " ").match(WORD) ?? []).map((word) => word.toLowerCase());
  for (const word of words) yield [word, COMMON.has(word) ? 0.3 : 1.0];
  for (let i = 0; i + 1 < words.length; i++) yield [`${words[i]} ${words[i + 1]}`, 0.5];
  for (const word of words) {
    const padded = [..."^", ...word, "$"];
    for (let i = 0; i + 2 < padded.length; i++) yield [padded.slice(i, i + 3).join(""), 0.25];
  }
}

const CRC = Uint32Array.from({ length: 256 }, (_, byte) => {
  let code = byte;
  for (let bit = 0; bit < 8; bit++) code = code & 1 ? (code >>> 1) ^ 0xedb88320 : code >>> 1;
  return code;
});

/** Return the CRC-32 of zlib. */
export function crc32(bytes: Uint8Array): number {
  let code = 0xffffffff;
  for (const byte of bytes) code = (code >>> 8) ^ (CRC[(code ^ byte) & 255] as number);
  return (code ^ 0xffffffff) >>> 0;
}

/** Return the float32 sum in the order in which numpy adds: eight lanes in blocks of at most 128, halves above that. */
function pairwiseSum(x: Float32Array, start: number, n: number): number {
  const at = (i: number) => x[start + i] as number;
  if (n < 8) {
    let sum = 0;
    for (let i = 0; i < n; i++) sum = f(sum + at(i));
    return sum;
  }
  if (n <= 128) {
    const r = Float32Array.from({ length: 8 }, (_, lane) => at(lane));
    const multiple = n - (n % 8);
    for (let i = 8; i < multiple; i++) r[i % 8] = f((r[i % 8] as number) + at(i));
    const [a, b, c, d, e, g, h, k] = r as unknown as [number, number, number, number, number, number, number, number];
    let sum = f(f(f(a + b) + f(c + d)) + f(f(e + g) + f(h + k)));
    for (let i = multiple; i < n; i++) sum = f(sum + at(i));
    return sum;
  }
  const half = Math.floor(n / 2) - (Math.floor(n / 2) % 8);
  return f(pairwiseSum(x, start, half) + pairwiseSum(x, start + half, n - half));
}
