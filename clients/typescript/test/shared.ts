/** One real service for all tests, and the means to start others. */

import { spawn, type ChildProcess } from "node:child_process";
import { createServer, request, type Server } from "node:http";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";
import { Surefoot, type NewPolicy } from "@surefoot/client";
import { RLInterface } from "@surefoot/client/rl";

export const ROOT = fileURLToPath(new URL("../../", import.meta.url));
export const PYTHON = process.env["SUREFOOT_PYTHON"] ?? "python3";
export const folder = mkdtempSync(join(tmpdir(), "surefoot-client-"));
export const DIM = 64;
export const rl = new RLInterface({
  pythonPath: PYTHON,
  serverPort: 0,
  embeddingDim: DIM,
  minBufferSize: 24,
  dataDir: join(folder, "shared"),
});
const started = rl.startServer();

/** A client of the shared service. */
export async function client(): Promise<Surefoot> {
  await started;
  return new Surefoot({ baseURL: rl.baseURL });
}

export const GREET: NewPolicy & { actions: string[] } = {
  name: "greet",
  actions: ["hello", "bye", "wave"],
  embedding_size: 8,
  training: { automatic: false, least: 16 },
};

after(async () => {
  await rl.stopServer();
  rmSync(folder, { recursive: true, force: true });
});

/** `surefoot serve` with these arguments, and where it listens. */
export async function serve(...args: string[]): Promise<{ child: ChildProcess; url: string }> {
  const child = spawn(PYTHON, ["-m", "surefoot", "serve", "--exit-with-parent", "--port", "0", ...args], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  return { child, url: await said(child, /Server started at (\S+)/) };
}

/** Resolves with the first group once the child's output has it. */
export function said(child: ChildProcess, wanted: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    child.stdout?.on("data", (chunk: Buffer) => {
      text += chunk.toString();
      const found = wanted.exec(text);
      if (found) resolve(found[1] as string);
    });
    child.once("exit", () => reject(new Error(`it ended before it said ${wanted}: ${text}`)));
  });
}

export interface Proxy {
  url: string;
  /** Requests that came through so far. */
  count: number;
  close(): void;
}

/** Passes requests on, waits for the answer, and drops the first `lost` of them on the way back. */
export async function dropping(upstream: string, lost: number): Promise<Proxy> {
  const proxy: Proxy = { url: "", count: 0, close: () => server.close() };
  const server: Server = createServer((asked, answer) => {
    const place = proxy.count++;
    const headers = { ...asked.headers, host: new URL(upstream).host };
    const onward = request(upstream + asked.url, { method: asked.method ?? "GET", headers }, (told) => {
      if (place < lost) {
        told.resume();
        told.on("end", () => asked.socket.destroy());
      } else {
        answer.writeHead(told.statusCode ?? 500, told.headers);
        told.pipe(answer);
      }
    });
    asked.pipe(onward);
  });
  proxy.url = await listening(server);
  return proxy;
}

/** A service that answers everything with one status. */
export async function answering(status: number, headers: Record<string, string>): Promise<Proxy> {
  const proxy: Proxy = { url: "", count: 0, close: () => server.close() };
  const server = createServer((_, answer) => {
    proxy.count++;
    answer.writeHead(status, { "content-type": "application/problem+json", ...headers });
    answer.end(JSON.stringify({ type: "about:surefoot/made-up", title: "Made up", detail: "made up", request_id: "r1" }));
  });
  proxy.url = await listening(server);
  return proxy;
}

function listening(server: Server): Promise<string> {
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      server.unref();
      resolve(`http://127.0.0.1:${(server.address() as { port: number }).port}`);
    });
  });
}
