// Write src/schema.ts (from the service's OpenAPI document) and src/prompts/tables.ts (from its prompt mutations).
// With `--check`: fail if they are not current.

import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { typesOf } from "./types.mjs";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));
const python = process.env.SUREFOOT_PYTHON ?? "python3";
const run = (...args) => execFileSync(python, args, { encoding: "utf8", maxBuffer: 1 << 26 });

const files = {
  "src/schema.ts": typesOf(JSON.parse(run("-m", "surefoot", "serve", "--openapi"))),
  "src/prompts/tables.ts": run("scripts/tables.py"),
};
for (const [path, text] of Object.entries(files)) {
  if (!process.argv.includes("--check")) writeFileSync(path, text);
  else if (readFileSync(path, "utf8") !== text) {
    console.error(`${path} is not current; npm run types updates it`);
    process.exitCode = 1;
  }
}
