// Files that contain a graph: a page, and a PNG picture with the graph in a text chunk. Drop one on the page to open it.

import { ask, enter, get, toast } from "./store";
import type { Doc } from "./types";

const KEY = "surefoot.graph";
/** Where ComfyUI puts the workflow of a picture. */
const COMFY = "workflow\0";
const MOST_TEXT = 4 * 2 ** 20;
/** Of a picture, which may be larger than its graph. */
const MOST_BYTES = 64 * 2 ** 20;

interface Shared {
  svg: string;
  html: string;
  json: string;
}

export async function share(kind: "png" | "html" | "json"): Promise<void> {
  const doc = get().doc?.doc;
  const shared = doc ? await ask<Shared>("share", { doc }) : null;
  if (!doc || !shared) return;
  const blob = kind === "png" ? await pictureOf(shared) : new Blob([shared[kind]], { type: kind === "html" ? "text/html" : "application/json" });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = `${doc}.${kind}`;
  link.click();
  URL.revokeObjectURL(link.href);
}

/** Open the graph of a file: JSON, a program, a workflow, or a page or picture that was shared. */
export async function openFile(file: File): Promise<void> {
  const size = (bytes: number) => `${(bytes / 2 ** 20).toFixed(1)} MB`;
  // A larger message would close the connection.
  if (file.size > MOST_BYTES) return toast(`${file.name} has ${size(file.size)}; a graph has at most ${size(MOST_TEXT)}`, "error");
  const text = /\.png$/i.test(file.name) ? graphIn(new Uint8Array(await file.arrayBuffer())) : await file.text();
  if (!text) return toast(`${file.name} contains no graph`, "error");
  if (text.length > MOST_TEXT) return toast(`${file.name} has ${size(text.length)}; a graph has at most ${size(MOST_TEXT)}`, "error");
  const doc = await ask<Doc & { notes: string[] }>("import", { name: file.name.replace(/\.[^.]*$/, ""), text });
  if (!doc) return;
  enter(doc);
  for (const note of doc.notes.slice(0, 4)) toast(note);
}

async function pictureOf({ svg, json }: Shared): Promise<Blob> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  // Twice the size: sharp on screens with a high density.
  [canvas.width, canvas.height] = [image.width * 2, image.height * 2];
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/png"));
  const bytes = new Uint8Array(await (blob as Blob).arrayBuffer());
  // A chunk of uncompressed UTF-8 text before the last one, IEND, which has 12 bytes.
  const text = new TextEncoder().encode(`${KEY}\0\0\0\0\0${json}`);
  const chunk = new Uint8Array(text.length + 12);
  const view = new DataView(chunk.buffer);
  view.setUint32(0, text.length);
  chunk.set(new TextEncoder().encode("iTXt"), 4);
  chunk.set(text, 8);
  view.setUint32(text.length + 8, crc(chunk.subarray(4, text.length + 8)));
  return new Blob([bytes.subarray(0, -12), chunk, bytes.subarray(-12)], { type: "image/png" });
}

function graphIn(bytes: Uint8Array): string {
  const view = new DataView(bytes.buffer);
  const words = new TextDecoder();
  for (let at = 8; at + 12 <= bytes.length; ) {
    const size = view.getUint32(at);
    const body = bytes.subarray(at + 8, at + 8 + size);
    if (words.decode(bytes.subarray(at + 4, at + 8)) === "tEXt" && words.decode(body.subarray(0, COMFY.length)) === COMFY) return words.decode(body.subarray(COMFY.length));
    if (words.decode(bytes.subarray(at + 4, at + 8)) === "iTXt" && words.decode(body.subarray(0, KEY.length)) === KEY) return words.decode(body.subarray(KEY.length + 5));
    at += size + 12;
  }
  return "";
}

function crc(bytes: Uint8Array): number {
  let sum = 0xffffffff;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit++) sum = sum & 1 ? (sum >>> 1) ^ 0xedb88320 : sum >>> 1;
  }
  return (sum ^ 0xffffffff) >>> 0;
}
