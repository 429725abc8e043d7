/** Ids for decisions. They need to be different, not secret. */

export function newId(): string {
  const bytes = new Uint8Array(16);
  if (globalThis.crypto?.getRandomValues) globalThis.crypto.getRandomValues(bytes);
  else bytes.forEach((_, place) => (bytes[place] = Math.floor(256 * Math.random()))); // Node 18
  return `d-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
