/** Return floats as base64 of little-endian float32, independent of the machine's byte order. */

export function base64OfFloats(floats: Float32Array): string {
  const view = new DataView(new ArrayBuffer(4 * floats.length));
  floats.forEach((value, i) => view.setFloat32(4 * i, value, true));
  const bytes = new Uint8Array(view.buffer);
  let text = "";
  for (let start = 0; start < bytes.length; start += 8192) {
    text += String.fromCharCode(...bytes.subarray(start, start + 8192));
  }
  return btoa(text);
}
