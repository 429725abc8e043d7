// The typescript blocks of the how-to page as modules in pages/, to be compiled and run by the tests.

import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));
const page = readFileSync("../../docs/how-to/typescript.md", "utf8");
rmSync("pages", { recursive: true, force: true });
mkdirSync("pages");
[...page.matchAll(/^```typescript\n(.*?)^```$/gms)].forEach(([, text], place) => {
  const here = text.replaceAll('"http://127.0.0.1:8765"', 'process.env["SUREFOOT_URL"]!');
  writeFileSync(`pages/${String(place + 1).padStart(2, "0")}.ts`, here);
});
