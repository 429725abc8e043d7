import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { ConnectionFailed, ExportedPolicy, HashingEncoder, Invalid, MUTATIONS, exportPolicy } from "@surefoot/client";
import { RLInterface, RLTrainer, type Progress } from "@surefoot/client/rl";
import { DIM, PYTHON, ROOT, client, folder, rl, said } from "./shared.js";

const PROMPTS = [
  "Write a Python function that sorts a list and then test it with several edge cases",
  "Explain what a REST API is",
  "Create a slogan for a coffee brand",
  "Fix the bug in the login page; then update the documentation of it",
];

test("the interface selects, stores, updates, reports, saves and loads", async () => {
  await rl.startServer();
  assert.equal(await rl.checkHealth(), true);
  const action = await rl.selectMutation(PROMPTS[0]!);
  assert.equal(MUTATIONS[action.actionIndex], action.mutationType);
  assert.ok(Math.abs(action.probability - Math.exp(action.logProb)) < 1e-12);
  const chances = await rl.getActionDistribution(await rl.config.embed(PROMPTS[0]!));
  assert.ok(Math.abs(chances[action.mutationType] - action.probability) < 1e-9);
  const { stored, reward } = await rl.collectExperience(PROMPTS[0]!, `${PROMPTS[0]}. If that cannot be done, say why.`, action, false);
  assert.equal(stored, true);
  assert.ok(reward < 0, "the lint gives nothing for a sentence that fits every prompt; its tokens cost");
  assert.equal(await rl.update(), null, "one experience is too little");
  const episode = await rl.trainEpisode(PROMPTS, 3);
  assert.equal(episode.mutations.length, episode.totalSteps);
  assert.equal(episode.texts.length, PROMPTS.length);
  for (let i = 0; i < 3; i++) await rl.trainEpisode(PROMPTS, { maxSteps: 5 });
  const update = await rl.update();
  assert.equal(update?.updateCount, 1);
  assert.ok(update.bufferSize >= 24 && update.entropy > 1.4 && Number.isFinite(update.policyLoss));
  const stats = await rl.getStats();
  assert.equal(stats?.totalUpdates, 1);
  assert.ok(stats.avgReward < 0 && stats.maxReward >= stats.avgReward && stats.avgEntropy > 0);
  assert.equal(await rl.saveCheckpoint("after-one"), "after-one");
  assert.equal(await rl.loadCheckpoint("after-one"), true);
  assert.equal(await rl.loadCheckpoint("never-saved"), false);
  await assert.rejects(rl.saveCheckpoint("../elsewhere"), Invalid);
});

test("a trained version exported to TypeScript has the server's digits, critic included", async () => {
  const file = readFileSync(join(rl.config.dataDir, "directive023/latest/weights.safetensors"));
  const policy = ExportedPolicy.read(file, MUTATIONS);
  for (const prompt of PROMPTS) {
    const row = await rl.config.embed(prompt);
    const there = await rl.getActionDistribution(row);
    policy.distribution(row).forEach((p, i) => assert.ok(Math.abs(p - there[MUTATIONS[i]!]) < 1e-5));
    assert.ok(Math.abs(policy.expected(row) - (await rl.selectAction(row)).value) < 1e-5);
  }
});

test("a version of a served policy has the service's probabilities in TypeScript, retired actions and masks included", async () => {
  const surefoot = await client();
  const actions = ["refund", "replace", "person"];
  const encoder = new HashingEncoder(DIM);
  const descriptions = ["give the money back", "send a new cup", "let a colleague answer"].map((text) => [...encoder.encode(text)]);
  const description_embeddings = Object.fromEntries(actions.map((name, i) => [name, descriptions[i] as number[]]));
  await surefoot.createPolicy({ name: "exported", actions, embedding_size: DIM, description_embeddings, training: { automatic: false, least: 1 } });
  const texts = ["the cup arrived broken", "I want my money", "hello, is anybody there", "my cup is lost"];
  // Twice as long as unit vectors: the service divides embeddings by their mean length.
  const rows = texts.map((text) => encoder.encode(text).map((x) => 2 * x));
  for (let i = 0; i < 16; i++) {
    const { decision_id, name } = await surefoot.decide("exported", { embedding: rows[i % 4]! });
    await surefoot.reward(decision_id, name === ["replace", "refund", "person", "replace"][i % 4] ? 1 : 0);
  }
  await surefoot.changePolicy("exported", { retire_actions: ["person"] });
  const job = await surefoot.finished(await surefoot.update("exported"));
  const folder = join(rl.config.dataDir, "policies/exported", `${job.result["version"]}`.padStart(6, "0"));
  const file = exportPolicy(readFileSync(join(folder, "weights.safetensors")), { actions, encoder: "mine" });
  const policy = ExportedPolicy.read(file);
  for (const mask of [undefined, [true, false, false]]) {
    for (const embedding of rows) {
      const there = await surefoot.distribution("exported", { embedding, ...(mask ? { mask } : {}) });
      policy.distribution(embedding, mask).forEach((p, i) => assert.ok(Math.abs(p - there.distribution[i]!) < 1e-5));
    }
  }
  assert.equal(policy.distribution(rows[2]!)[2], 0, "it is retired");
  assert.ok(policy.expected(rows[0]!) > 0.3);
  assert.throws(() => policy.distribution(rows[0]!, [false, false, true]), /allows 0 actions/);
  await surefoot.createPolicy({ name: "any", choose: "candidates", embedding_size: DIM, training: { automatic: false, least: 1 } });
  const only = [{ id: "a", embedding: rows[0]! }];
  const { decision_id } = await surefoot.decide("any", { embedding: rows[0]!, candidates: only });
  await surefoot.reward(decision_id, 1);
  await surefoot.finished(await surefoot.update("any"));
  const weights = readFileSync(join(rl.config.dataDir, "policies/any/000001/weights.safetensors"));
  assert.throws(() => ExportedPolicy.read(weights), /over candidates.*distribution/);
});

test("the trainer trains with positions or with options, and tells how it goes", async () => {
  const trainer = new RLTrainer(rl);
  const told: Progress[] = [];
  const stats = await trainer.train(PROMPTS, 2, 4, 2, (progress) => told.push(progress));
  assert.deepEqual(told.map((p) => [p.episode, p.numEpisodes, p.update !== null]), [[1, 2, false], [2, 2, true]]);
  assert.ok(stats.totalEpisodes >= 2 && stats.totalUpdates >= 2);
  const again = await trainer.train(PROMPTS, { numEpisodes: 1, episodeLength: 2, updateInterval: 5 });
  assert.ok(again.totalEpisodes >= 3);
  assert.equal(trainer.getInterface(), rl);
});

test("a reward model of one's own decides what is learned", async () => {
  const own = new RLInterface({ ...rl.config, autoStartServer: false });
  own.setRewardModel((before, after) => (after === before ? 0 : 2));
  const reward = await own.rewardOf("Write a poem", "Write a poem now", "expansion", "CREATIVE_WRITING");
  assert.ok(Math.abs(reward - (2 - 0.002)) < 1e-12, "what it gained, less one token");
  own.setRewardModel({ predict: () => ({ score: 0.5 }) });
  assert.equal(await own.rewardOf("Write", "Write", "expansion", "CREATIVE_WRITING"), 0);
});

test("a server that cannot be started says why, and leaves nothing behind", async () => {
  const missing = new RLInterface({ pythonPath: "/no/such/python", serverPort: 0 });
  await assert.rejects(missing.startServer(), ConnectionFailed);
  const wrong = new RLInterface({ ...rl.config, serverPort: 0, embeddingDim: DIM_OF_ANOTHER, dataDir: rl.config.dataDir });
  await assert.rejects(wrong.startServer(), /cannot start/);
});
const DIM_OF_ANOTHER = 16;

test("a server that is stopped while it starts is stopped", async () => {
  const dataDir = join(folder, "hasty");
  const hasty = new RLInterface({ ...rl.config, serverPort: 0, dataDir });
  const starting = hasty.startServer();
  await hasty.stopServer();
  await starting;
  assert.equal(await hasty.checkHealth(), false);
});

for (const ending of ["exit", "SIGKILL"] as const) {
  test(`no server outlives its program: ${ending}`, async () => {
    const child = spawn(process.execPath, [join(ROOT, "build/test/orphan.js"), ending, join(folder, `orphan-${ending}`)], {
      env: { ...process.env, SUREFOOT_PYTHON: PYTHON },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const pid = Number(await said(child, /server (\d+)/));
    assert.ok(alive(pid));
    if (ending === "SIGKILL") child.kill("SIGKILL");
    for (let tries = 0; tries < 300 && alive(pid); tries++) await wait(100);
    const outlived = alive(pid);
    if (outlived) process.kill(pid, "SIGKILL");
    assert.equal(outlived, false);
  });
}

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
