// Everything that must hold of this package, with the time of each part; stops at the first that does not.

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));
const node = process.execPath;
const folder = mkdtempSync(join(tmpdir(), "surefoot-pack-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
const { version } = JSON.parse(readFileSync("package.json", "utf8"));
const packed = join(folder, `surefoot-client-${version}.tgz`);
const PARTS = [
  ["generated files are current", node, "scripts/generate.mjs", "--check"],
  ["build", node, "scripts/build.mjs"],
  ["the page's examples", node, "scripts/docs.mjs"],
  ["types of tests and examples", node, "node_modules/typescript/bin/tsc", "-p", "tsconfig.test.json"],
  ["pack", "npm", "pack", "--silent", "--pack-destination", folder],
  ["publint", node, "node_modules/publint/src/cli.js", packed, "--strict"],
  ["attw", node, "node_modules/@arethetypeswrong/cli/dist/index.js", packed, "--format", "ascii", "--quiet"],
  ["tests", node, "--test", "build/test/all.test.js"],
];
for (const [name, command, ...args] of PARTS) {
  const begin = Date.now();
  const { status, error } = spawnSync(command, args, { stdio: "inherit" });
  console.log(`${((Date.now() - begin) / 1000).toFixed(1).padStart(6)} s  ${name}`);
  if (status !== 0) {
    console.error(`${name} failed${error ? `: ${error.message}` : ""}`);
    process.exit(1);
  }
}
