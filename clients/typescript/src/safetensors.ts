/** Read and write safetensors files: a JSON header followed by numbers. Reading one never executes code. */

import { SurefootError } from "./errors.js";

export interface Tensor {
  shape: number[];
  data: Float32Array;
}

export interface Weights {
  tensors: Map<string, Tensor>;
  metadata: Record<string, string>;
}

interface Entry {
  dtype: string;
  shape: number[];
  data_offsets: [number, number];
}

/** Return the float32 tensors of a file; other types are skipped. */
export function readSafetensors(file: Uint8Array): Weights {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const size = file.byteLength < 8 ? Infinity : Number(view.getBigUint64(0, true));
  if (8 + size > file.byteLength) throw new SurefootError("not a safetensors file: its header is longer than the file");
  let header: Record<string, Entry | Record<string, string>>;
  try {
    header = JSON.parse(new TextDecoder().decode(file.subarray(8, 8 + size)));
  } catch (why) {
    throw new SurefootError("not a safetensors file: its header is not JSON", { cause: why });
  }
  const { __metadata__: metadata = {}, ...entries } = header;
  const tensors = new Map<string, Tensor>();
  for (const [name, entry] of Object.entries(entries) as [string, Entry][]) {
    if (entry.dtype !== "F32") continue;
    const [begin, end] = entry.data_offsets;
    const count = entry.shape.reduce((product, side) => product * side, 1);
    if (end - begin !== 4 * count || 8 + size + end > file.byteLength) {
      throw new SurefootError(`${name} is cut short: ${end - begin} bytes for [${entry.shape}]`);
    }
    const data = new Float32Array(count);
    for (let i = 0; i < count; i++) data[i] = view.getFloat32(8 + size + begin + 4 * i, true);
    tensors.set(name, { shape: entry.shape, data });
  }
  return { tensors, metadata: metadata as Record<string, string> };
}

/** Return the bytes of a safetensors file with float32 tensors. */
export function writeSafetensors(weights: Weights): Uint8Array {
  const header: Record<string, unknown> = { __metadata__: weights.metadata };
  let end = 0;
  for (const [name, { shape, data }] of weights.tensors) {
    header[name] = { dtype: "F32", shape, data_offsets: [end, (end += 4 * data.length)] };
  }
  let text = JSON.stringify(header);
  text += " ".repeat((8 - (new TextEncoder().encode(text).length % 8)) % 8);
  const head = new TextEncoder().encode(text);
  const file = new Uint8Array(8 + head.length + end);
  const view = new DataView(file.buffer);
  view.setBigUint64(0, BigInt(head.length), true);
  file.set(head, 8);
  let offset = 8 + head.length;
  for (const { data } of weights.tensors.values()) {
    for (const value of data) view.setFloat32((offset += 4) - 4, value, true);
  }
  return file;
}
