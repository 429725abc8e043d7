// Everything that must hold of this package, with the time of each part; stops at the first that does not.

import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));
const node = process.execPath;
const PARTS = [
  ["generated files are current", "scripts/generate.mjs", "--check"],
  ["build", "scripts/build.mjs"],
  ["the page's examples", "scripts/docs.mjs"],
  ["types of tests and examples", "node_modules/typescript/bin/tsc", "-p", "tsconfig.test.json"],
  ["publint", "node_modules/publint/src/cli.js", "--strict"],
  ["attw", "node_modules/@arethetypeswrong/cli/dist/index.js", "--pack", ".", "--format", "ascii", "--quiet"],
  ["tests", "--test", "build/test/all.test.js"],
];
for (const [name, ...args] of PARTS) {
  const begin = Date.now();
  const { status } = spawnSync(node, args, { stdio: "inherit" });
  console.log(`${((Date.now() - begin) / 1000).toFixed(1).padStart(6)} s  ${name}`);
  if (status !== 0) {
    console.error(`${name} failed`);
    process.exit(1);
  }
}
