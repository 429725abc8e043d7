/** Runs `surefoot serve` as a child process that ends with this process, even if this process is killed. */

import { spawn, type ChildProcess } from "node:child_process";
import type { Socket } from "node:net";
import { ConnectionFailed } from "./errors.js";

export interface ServerOptions {
  /** Python interpreter with surefoot installed. */
  python: string;
  /** Arguments of `surefoot serve`. */
  args: readonly string[];
  /** Milliseconds within which the service must be listening. */
  timeout: number;
}

/** Characters of the output that are stored: enough for the last error message. */
const LOG_SIZE = 4096;
/** Milliseconds between SIGTERM and SIGKILL. */
const GRACE = 15_000;

export class Server {
  private stderr = "";

  private constructor(
    private readonly child: ChildProcess,
    private readonly exited: Promise<void>,
  ) {}

  /** Address of the service. */
  url = "";

  /** Start the service; resolves when it is listening, rejects with its error output if it fails to. */
  static async start(options: ServerOptions): Promise<Server> {
    // The service exits when its standard input is closed, which the operating system does even if this process is killed.
    const args = ["-m", "surefoot", "serve", "--exit-with-parent", ...options.args];
    const child = spawn(options.python, args, { stdio: ["pipe", "pipe", "pipe"] });
    let failed: Error | undefined;
    const exited = new Promise<void>((resolve) => {
      child.once("error", (why) => resolve(void (failed = why)));
      child.once("exit", () => resolve());
    });
    const server = new Server(child, exited);
    child.stdin?.on("error", () => {}); // EPIPE if the service exits first
    child.stderr?.on("data", (chunk: Buffer) => (server.stderr = (server.stderr + chunk.toString()).slice(-LOG_SIZE)));
    let timer: NodeJS.Timeout | undefined;
    const outcome = await Promise.race([
      listening(child).then((url) => ({ url })),
      exited.then(() => ({ why: failed?.message ?? `it exited with code ${child.exitCode}` })),
      new Promise<{ why: string }>((resolve) => {
        timer = setTimeout(() => resolve({ why: `it is not listening after ${options.timeout} ms` }), options.timeout);
      }),
    ]);
    clearTimeout(timer);
    if ("why" in outcome) {
      child.kill("SIGKILL");
      throw new ConnectionFailed(`cannot start ${options.python} ${args.join(" ")}: ${outcome.why}\n${server.stderr}`.trimEnd());
    }
    server.url = outcome.url;
    server.hold(false);
    return server;
  }

  get pid(): number | undefined {
    return this.child.pid;
  }

  /** The end of its standard error. */
  get log(): string {
    return this.stderr;
  }

  /** Stop the service; resolves when it has exited. Acknowledged requests are on disk. */
  async stop(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    this.hold(true);
    this.child.kill("SIGTERM");
    const timer = setTimeout(() => this.child.kill("SIGKILL"), GRACE);
    await this.exited;
    clearTimeout(timer);
  }

  /** Choose whether the child keeps the event loop of this process alive. */
  private hold(alive: boolean): void {
    for (const each of [this.child, this.child.stdin, this.child.stdout, this.child.stderr]) {
      const handle = each as Socket | null;
      if (alive) handle?.ref();
      else handle?.unref();
    }
  }
}

function listening(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    let output = "";
    child.stdout?.on("data", (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-LOG_SIZE);
      const url = /Server started at (\S+)\s/.exec(output)?.[1];
      if (url) resolve(url);
    });
  });
}
