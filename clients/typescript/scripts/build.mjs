// dist/esm and dist/cjs, each with its own declarations.

import { execFileSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
process.chdir(root);
rmSync("dist", { recursive: true, force: true });
for (const [folder, project, type] of [
  ["esm", "tsconfig.json", "module"],
  ["cjs", "tsconfig.cjs.json", "commonjs"],
]) {
  execFileSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", project], { stdio: "inherit" });
  writeFileSync(`dist/${folder}/package.json`, `{ "type": "${type}" }\n`);
}
