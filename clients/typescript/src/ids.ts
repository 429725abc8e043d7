/** Return a random id for a decision. Ids must be unique, not secret. */

export function newId(): string {
  const bytes = new Uint8Array(16);
  if (globalThis.crypto?.getRandomValues) globalThis.crypto.getRandomValues(bytes);
  else bytes.forEach((_, i) => (bytes[i] = Math.floor(256 * Math.random()))); // Node 18 has no global crypto
  return `d-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
