// Builds what is not built yet, then runs the demo with the arguments given.

import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const demo = `${root}build/examples/rl-training.demo.js`;
const run = (...args) => execFileSync(process.execPath, args, { cwd: root, stdio: "inherit" });
if (!existsSync(`${root}dist`)) run("scripts/build.mjs");
if (!existsSync(demo)) run("node_modules/typescript/bin/tsc", "-p", "tsconfig.test.json");
await import(demo);
