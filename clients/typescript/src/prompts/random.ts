/** Python's `random.Random(text).sample`, so that a seed chooses the same items in both languages. */

const MASK = (1n << 64n) - 1n;

/** Return `k` different items, the same as `random.Random(seed).sample(items, k)` in Python. */
export function sample<T>(seed: string, items: readonly T[], k: number): T[] {
  const twister = new Twister(seedWords(new TextEncoder().encode(seed)));
  const pool = [...items];
  return Array.from({ length: k }, (_, i) => {
    const last = items.length - i - 1;
    const index = twister.below(last + 1);
    const chosen = pool[index] as T;
    pool[index] = pool[last] as T;
    return chosen;
  });
}

/** Return a text followed by its SHA-512 as one big-endian number, in 32-bit words, the lowest first (CPython's `seed`). */
function seedWords(text: Uint8Array): Uint32Array {
  const bytes = [...text, ...sha512(text)];
  while (bytes[0] === 0) bytes.shift();
  bytes.reverse();
  const words = new Uint32Array(Math.ceil(bytes.length / 4));
  bytes.forEach((byte, i) => (words[i >> 2] = ((words[i >> 2] as number) | (byte << (8 * (i & 3)))) >>> 0));
  return words;
}

/** The Mersenne Twister MT19937, seeded with an array (`init_by_array`). */
class Twister {
  private readonly mt = new Uint32Array(624);
  private position = 624;

  constructor(key: Uint32Array) {
    const mt = this.mt;
    const mixed = (i: number) => (mt[i - 1] as number) ^ ((mt[i - 1] as number) >>> 30);
    mt[0] = 19650218;
    for (let i = 1; i < 624; i++) mt[i] = Math.imul(1812433253, mixed(i)) + i;
    let i = 1;
    let j = 0;
    const next = () => {
      if (++i >= 624) {
        mt[0] = mt[623] as number;
        i = 1;
      }
    };
    for (let k = Math.max(624, key.length); k > 0; k--) {
      mt[i] = ((mt[i] as number) ^ Math.imul(mixed(i), 1664525)) + (key[j] as number) + j;
      next();
      j = (j + 1) % key.length;
    }
    for (let k = 623; k > 0; k--) {
      mt[i] = ((mt[i] as number) ^ Math.imul(mixed(i), 1566083941)) - i;
      next();
    }
    mt[0] = 0x80000000;
  }

  /** Return an integer from 0 to n - 1. */
  below(n: number): number {
    const shift = Math.clz32(n);
    for (;;) {
      const drawn = this.next() >>> shift;
      if (drawn < n) return drawn;
    }
  }

  private next(): number {
    const mt = this.mt;
    if (this.position >= 624) {
      for (let i = 0; i < 624; i++) {
        const y = ((mt[i] as number) & 0x80000000) | ((mt[(i + 1) % 624] as number) & 0x7fffffff);
        mt[i] = (mt[(i + 397) % 624] as number) ^ (y >>> 1) ^ (y & 1 ? 0x9908b0df : 0);
      }
      this.position = 0;
    }
    let y = mt[this.position++] as number;
    y ^= y >>> 11;
    y ^= (y << 7) & 0x9d2c5680;
    y ^= (y << 15) & 0xefc60000;
    return (y ^ (y >>> 18)) >>> 0;
  }
}

const PRIMES = Array.from({ length: 410 }, (_, n) => n).filter((n) => n > 1 && ![...Array(n).keys()].some((d) => d > 1 && n % d === 0));
/** The first 64 bits of the fractional part of a root of a prime: the constants of SHA-512. */
const root = (prime: number, degree: bigint) => {
  const target = BigInt(prime) << (64n * degree);
  let low = 0n;
  let high = 1n << 80n;
  while (high - low > 1n) {
    const middle = (low + high) / 2n;
    if (middle ** degree <= target) low = middle;
    else high = middle;
  }
  return low & MASK;
};
let constants: { first: bigint[]; rounds: bigint[] } | undefined;

/** Return the SHA-512 of a short message. */
export function sha512(message: Uint8Array): Uint8Array {
  constants ??= {
    first: PRIMES.slice(0, 8).map((p) => root(p, 2n)),
    rounds: PRIMES.slice(0, 80).map((p) => root(p, 3n)),
  };
  const padded = new Uint8Array(Math.ceil((message.length + 17) / 128) * 128);
  padded.set(message);
  padded[message.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setBigUint64(padded.length - 8, BigInt(8 * message.length));
  const state = [...constants.first];
  for (let start = 0; start < padded.length; start += 128) {
    compress(state, Array.from({ length: 16 }, (_, i) => view.getBigUint64(start + 8 * i)), constants.rounds);
  }
  const out = new DataView(new ArrayBuffer(64));
  state.forEach((word, i) => out.setBigUint64(8 * i, word));
  return new Uint8Array(out.buffer);
}

function compress(state: bigint[], w: bigint[], rounds: readonly bigint[]): void {
  const rotate = (x: bigint, by: bigint) => ((x >> by) | (x << (64n - by))) & MASK;
  const at = (i: number) => w[i] as bigint;
  for (let i = 16; i < 80; i++) {
    const s0 = rotate(at(i - 15), 1n) ^ rotate(at(i - 15), 8n) ^ (at(i - 15) >> 7n);
    const s1 = rotate(at(i - 2), 19n) ^ rotate(at(i - 2), 61n) ^ (at(i - 2) >> 6n);
    w.push((at(i - 16) + s0 + at(i - 7) + s1) & MASK);
  }
  let [a, b, c, d, e, f, g, h] = state as [bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint];
  for (let i = 0; i < 80; i++) {
    const s1 = rotate(e, 14n) ^ rotate(e, 18n) ^ rotate(e, 41n);
    const one = (h + s1 + ((e & f) ^ (~e & MASK & g)) + (rounds[i] as bigint) + at(i)) & MASK;
    const s0 = rotate(a, 28n) ^ rotate(a, 34n) ^ rotate(a, 39n);
    const two = (s0 + ((a & b) ^ (a & c) ^ (b & c))) & MASK;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) & MASK, c, b, a, (one + two) & MASK];
  }
  [a, b, c, d, e, f, g, h].forEach((word, i) => (state[i] = ((state[i] as bigint) + word) & MASK));
}
