/**
 * Which mutation makes a prompt better?
 *
 *     npm run demo                       decide from an exported policy; no Python, no server
 *     npm run demo -- --full             start a server, train on the gains of real mutations, plot, export the policy
 *     npm run demo -- --action "TEXT"    what it would do with a prompt of yours
 *
 * With --full: --episodes N, --prompts N (how many of the list), --file F (lines of text, or of JSON with a prompt), --out F.
 */

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { ExportedPolicy, HashingEncoder, MUTATIONS, allowed, classify, exportPolicy, mutate, score, tokens } from "@surefoot/client";
import { RLTrainer } from "@surefoot/client/rl";
import { PROMPTS } from "./prompts.js";

const DIM = 64;
const STEPS = 3;
const NAME = "prompts-policy.safetensors";

const { values } = parseArgs({
  options: {
    full: { type: "boolean", default: false },
    action: { type: "string" },
    episodes: { type: "string", default: "30" },
    prompts: { type: "string", default: "40" },
    file: { type: "string" },
    policy: { type: "string" },
    out: { type: "string", default: NAME },
  },
});

if (values.full) await trainAndPlot();
else decideHere(values.action === undefined ? PROMPTS.slice(0, 6) : [values.action]);

/** Improve prompts with a policy that was trained before. */
function decideHere(prompts: readonly string[]): void {
  const policy = ExportedPolicy.read(readFileSync(values.policy ?? shipped()));
  const encoder = new HashingEncoder(policy.size);
  for (const prompt of prompts) {
    const { category } = classify(prompt);
    console.log(`\n${category}  ${prompt}`);
    let text = prompt;
    for (let step = 0; step < STEPS; step++) {
      const mask = allowed(text);
      if (!mask.includes(true)) break;
      const choice = policy.choose(encoder.encode(text), { mask });
      const next = mutate(text, choice.action, { category }).text;
      const gain = score(next).score - score(text).score;
      const cost = tokens(next) - tokens(text);
      console.log(`  ${choice.name.padEnd(20)} p ${choice.probability.toFixed(2)}  gain ${signed(gain, 3)}  tokens ${signed(cost, 0)}`);
      text = next;
    }
    console.log(`  score ${score(prompt).score.toFixed(3)} → ${score(text).score.toFixed(3)}`);
    if (values.action !== undefined) console.log(`\n${text}`);
  }
}

/** Train through a real server, show how it goes, keep what was learned. */
async function trainAndPlot(): Promise<void> {
  const prompts = listed().slice(0, Number(values.prompts));
  const trainer = new RLTrainer({ embeddingDim: DIM, minBufferSize: 64 });
  await trainer.start();
  try {
    const curve: number[] = [];
    const stats = await trainer.train(prompts, {
      numEpisodes: Number(values.episodes),
      episodeLength: STEPS,
      updateInterval: 1,
      onProgress({ episode, numEpisodes, avgReward, update }) {
        curve.push(avgReward);
        const learned = update ? `  entropy ${update.entropy.toFixed(3)}  kl ${update.approxKl.toFixed(4)}` : "";
        console.log(`episode ${episode}/${numEpisodes}  reward of a mutation ${signed(avgReward, 4)}${learned}`);
      },
    });
    console.log(`\n${plot(curve)}\n`);
    console.log(`${stats.totalUpdates} updates; average of the last 100 rewards ${signed(stats.avgReward, 4)}, best ${signed(stats.maxReward, 3)}`);
    const weights = readFileSync(join(trainer.getInterface().config.dataDir, "directive023/latest/weights.safetensors"));
    writeFileSync(values.out, exportPolicy(weights, { actions: MUTATIONS, encoder: `hashing-1-${DIM}` }));
    console.log(`Wrote ${values.out}; --policy ${values.out} decides with it`);
  } finally {
    await trainer.stop();
  }
}

function listed(): readonly string[] {
  if (values.file === undefined) return PROMPTS;
  const lines = readFileSync(values.file, "utf8").split("\n").filter((line) => line.trim() !== "");
  return lines.map((line) => (line.startsWith("{") ? (JSON.parse(line) as { prompt: string }).prompt : line));
}

/** Beside this file, or beside its source. */
function shipped(): URL {
  const beside = new URL(NAME, import.meta.url);
  return existsSync(beside) ? beside : new URL(`../../examples/${NAME}`, import.meta.url);
}

function signed(x: number, digits: number): string {
  return `${x < 0 ? "" : "+"}${x.toFixed(digits)}`;
}

/** Columns of blocks, the lowest value at the bottom. */
function plot(curve: readonly number[], height = 8): string {
  const low = Math.min(...curve);
  const span = Math.max(...curve) - low || 1;
  return Array.from({ length: height }, (_, i) => height - 1 - i)
    .map((row) => {
      const label = (low + (span * (row + 0.5)) / height).toFixed(3).padStart(7);
      const cells = curve.map((x) => {
        const eighths = Math.round(((x - low) / span) * (8 * height - 1)) + 1 - 8 * row;
        return " ▁▂▃▄▅▆▇█"[Math.max(0, Math.min(8, eighths))];
      });
      return `${label} ┤${cells.join("")}`;
    })
    .join("\n");
}
