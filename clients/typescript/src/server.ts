/** A service as a child process: started, awaited, and ended with this process in any case. */

import { spawn, type ChildProcess } from "node:child_process";
import type { Socket } from "node:net";
import { ConnectionFailed } from "./errors.js";

export interface ServerOptions {
  /** The Python that has surefoot installed. */
  python: string;
  /** What follows `surefoot serve`. */
  args: readonly string[];
  /** Milliseconds until it must listen. */
  timeout: number;
}

const KEPT = 4096;
const GRACE = 15_000;

export class Server {
  private told = "";

  private constructor(
    private readonly child: ChildProcess,
    private readonly exited: Promise<void>,
  ) {}

  /** Where it listens. */
  url = "";

  /** Start it; resolves when it listens, rejects with what it said where it does not. */
  static async start(options: ServerOptions): Promise<Server> {
    // The service reads its standard input and ends with it; the kernel closes our end even if we are killed.
    const args = ["-m", "surefoot", "serve", "--exit-with-parent", ...options.args];
    const child = spawn(options.python, args, { stdio: ["pipe", "pipe", "pipe"] });
    let failed: Error | undefined;
    const exited = new Promise<void>((resolve) => {
      child.once("error", (why) => resolve(void (failed = why)));
      child.once("exit", () => resolve());
    });
    const server = new Server(child, exited);
    child.stdin?.on("error", () => {}); // it ended before we did
    child.stderr?.on("data", (chunk: Buffer) => (server.told = (server.told + chunk.toString()).slice(-KEPT)));
    let timer: NodeJS.Timeout | undefined;
    const outcome = await Promise.race([
      listening(child).then((url) => ({ url })),
      exited.then(() => ({ why: failed?.message ?? `it ended with code ${child.exitCode}` })),
      new Promise<{ why: string }>((resolve) => {
        timer = setTimeout(() => resolve({ why: `it does not listen after ${options.timeout} ms` }), options.timeout);
      }),
    ]);
    clearTimeout(timer);
    if ("why" in outcome) {
      child.kill("SIGKILL");
      throw new ConnectionFailed(`cannot start ${options.python} ${args.join(" ")}: ${outcome.why}\n${server.told}`.trimEnd());
    }
    server.url = outcome.url;
    server.hold(false);
    return server;
  }

  get pid(): number | undefined {
    return this.child.pid;
  }

  /** What it said last on its standard error. */
  get log(): string {
    return this.told;
  }

  /** End it: what was acknowledged is on the disk. Resolves when it is gone. */
  async stop(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    this.hold(true);
    this.child.kill("SIGTERM");
    const timer = setTimeout(() => this.child.kill("SIGKILL"), GRACE);
    await this.exited;
    clearTimeout(timer);
  }

  /** Whether this process stays alive for it. */
  private hold(yes: boolean): void {
    for (const each of [this.child, this.child.stdin, this.child.stdout, this.child.stderr]) {
      const handle = each as Socket | null;
      if (yes) handle?.ref();
      else handle?.unref();
    }
  }
}

function listening(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    let said = "";
    child.stdout?.on("data", (chunk: Buffer) => {
      said = (said + chunk.toString()).slice(-KEPT);
      const url = /Server started at (\S+)\s/.exec(said)?.[1];
      if (url) resolve(url);
    });
  });
}
