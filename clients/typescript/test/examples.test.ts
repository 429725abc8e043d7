import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { PYTHON, ROOT, client, folder, rl } from "./shared.js";

const run = promisify(execFile);

async function node(script: string, args: string[] = [], more: Record<string, string> = {}): Promise<string> {
  const cwd = join(folder, script.replace(/\W/g, "-") + args.join("-"));
  mkdirSync(cwd, { recursive: true });
  const env = { ...process.env, SUREFOOT_PYTHON: PYTHON, SUREFOOT_PORT: "0", ...more };
  return (await run(process.execPath, [join(ROOT, "build", script), ...args], { cwd, env })).stdout;
}

// A hundred episodes take a while; the other tests go on meanwhile.
const usage = client().then(() => node("test/seed-example.js"));
usage.catch(() => {});

test("the usage example of the earlier system runs", async () => {
  assert.match(await usage, /^Final avg reward: -?0\.\d+/);
});

test("the demo decides without Python", async () => {
  const said = await node("examples/rl-training.demo.js", [], { SUREFOOT_PYTHON: "/no/such/python" });
  assert.match(said, /score 0\.\d+ → 0\.\d+/);
});

test("the demo trains on a real server, plots and exports", async () => {
  const said = await node("examples/rl-training.demo.js", ["--full", "--episodes", "3", "--prompts", "12"]);
  assert.match(said, /█|▁/);
  assert.match(said, /Wrote .*\.safetensors/);
});

test("the examples of the how-to page run", async () => {
  await client();
  const shared = { SUREFOOT_URL: rl.baseURL, SUREFOOT_PORT: new URL(rl.baseURL).port };
  const pages = readdirSync(join(ROOT, "build/pages")).filter((name) => name.endsWith(".js")).sort();
  assert.ok(pages.length >= 3);
  for (const page of pages) await node(`pages/${page}`, [], shared);
});
