import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { test } from "node:test";
import {
  Conflict,
  ConnectionFailed,
  Forbidden,
  Invalid,
  NotFound,
  RateLimited,
  StatusError,
  Surefoot,
  SurefootError,
  TimedOut,
  Unauthorized,
  Unavailable,
} from "@surefoot/client";
import { GREET, PYTHON, ROOT, answering, client, dropping, folder, rl, serve } from "./shared.js";

const seen = (seed: number) => Float32Array.from({ length: 8 }, (_, i) => Math.sin(seed * 7 + i));

test("a policy decides, is rewarded, learns, is promoted, evaluated and rolled back", async () => {
  const surefoot = await client();
  const made = await surefoot.createPolicy(GREET);
  assert.deepEqual(await surefoot.createPolicy(GREET), made);
  const first = await surefoot.decide("greet", { embedding: seen(0), distribution: true, subject: "someone" });
  assert.equal(first.name, GREET.actions[first.action!]);
  assert.ok(Math.abs((first.distribution as number[])[first.action!]! - first.probability) < 1e-12);
  assert.equal((await surefoot.reward(first.decision_id, 0.5)).status, "stored");
  assert.equal((await surefoot.reward(first.decision_id, { value: 0.5 })).status, "replayed");
  const many = await surefoot.decideMany("greet", Array.from({ length: 30 }, (_, i) => ({ embedding: seen(i) })));
  assert.equal(new Set(many.map((d) => d.decision_id)).size, 30);
  await Promise.all(many.map((d) => surefoot.reward(d.decision_id, { parts: { liked: d.action === 1 ? 0.9 : 0, cost: 0.1 } })));
  const job = await surefoot.finished(await surefoot.update("greet", { least: 20 }), { every: 50 });
  assert.equal(job.result["version"], 1);
  assert.deepEqual((await surefoot.versions("greet")).map((v) => [v.version, v.live]), [[1, true], [0, false]]);
  assert.equal((await surefoot.rollback("greet")).version, 0);
  assert.deepEqual((await surefoot.promote("greet", 1, { share: 0.25 })).canary, [1, 0.25]);
  assert.equal((await surefoot.promote("greet", 1)).version, 1);
  const worth = await surefoot.evaluate("greet", 0, { last: 100 });
  assert.equal(worth.decisions, 31);
  assert.ok(worth.dr.low <= worth.dr.value && worth.dr.value <= worth.dr.high);
  const { checkpoint_id } = await surefoot.checkpoint("greet", { version: 0 });
  assert.equal((await surefoot.activateCheckpoint(checkpoint_id)).version, 0);
  const why = await surefoot.explain(first.decision_id);
  assert.equal(why.reward, 0.5);
  assert.equal(why.nearest.length, 5);
  assert.deepEqual((await surefoot.policies()).map((p) => p.name).sort(), ["greet"]);
  assert.equal((await surefoot.policy("greet")).decisions, 31);
  assert.deepEqual([await surefoot.health(), await surefoot.ready()], [{ status: "ok" }, { status: "ok" }]);
  assert.match(await surefoot.metrics(), /surefoot/);
});

test("a decision may bring its candidates, with descriptions or embeddings", async () => {
  const surefoot = await client();
  await surefoot.createPolicy({ name: "pick", choose: "candidates", encoder: "hashing", embedding_size: 64 });
  const candidates = [
    { id: "refund", description: "give the money back" },
    { id: "cup", description: "send a new cup" },
    { id: "other", embedding: new Float32Array(64).fill(0.1) },
  ];
  const made = await surefoot.decide("pick", { text: "send me a new cup", candidates, mask: [true, true, false] });
  assert.equal(made.name, candidates[made.action!]!.id);
  assert.equal((await surefoot.reward(made.decision_id, 1)).status, "stored");
  const { distribution, names } = await surefoot.distribution("pick", { text: "send me a new cup", candidates });
  assert.deepEqual(names, ["refund", "cup", "other"]);
  assert.equal(distribution.indexOf(Math.max(...distribution)), 1);
});

test("a trained policy is served as it is", async () => {
  const runs = process.env["SUREFOOT_RUNS"] ?? folder;
  const train = ["-m", "surefoot", "train", "CartPole-v1", "--steps", "64", "--runs", runs, "--name", "cart"];
  if (!existsSync(join(runs, "cart"))) execFileSync(PYTHON, train, { stdio: "ignore" });
  const { child, url } = await serve("cart", "--runs", runs);
  const surefoot = new Surefoot({ baseURL: url });
  assert.deepEqual((await surefoot.runs()).map((run) => run.name), ["cart"]);
  assert.deepEqual((await surefoot.run("cart")).observation, { obs: { shape: [4], dtype: "float32" } });
  const row = [0.1, -0.5, 0.05, 0.3];
  const { action } = await surefoot.act("cart", { observation: row });
  assert.ok(action === 0 || action === 1);
  const many = await surefoot.actMany("cart", [{ observation: Float32Array.from(row) }, { observation: row, mask: [false, true] }]);
  assert.deepEqual(many.map((each) => each.action), [action, 1]);
  await assert.rejects(surefoot.act("cart", { observation: [1] }), Invalid);
  await assert.rejects(surefoot.decide("greet", { embedding: seen(0) }), NotFound);
  child.stdin?.end();
  await once(child, "exit");
});

test("a deferred decision counts once it is activated", async () => {
  const surefoot = await client();
  await surefoot.createPolicy(GREET);
  const { decision_id } = await surefoot.decide("greet", { embedding: seen(1), defer: true });
  await assert.rejects(surefoot.reward(decision_id, 1), Conflict);
  assert.equal((await surefoot.activate(decision_id)).decision_id, decision_id);
  assert.equal((await surefoot.reward(decision_id, 1)).status, "stored");
});

test("floats as base64 are the floats as JSON", async () => {
  const surefoot = await client();
  await surefoot.createPolicy(GREET);
  const ask = { deterministic: true, distribution: true };
  const bytes = await surefoot.decide("greet", { embedding: seen(3), ...ask });
  const plain = await surefoot.decide("greet", { embedding: [...seen(3)], ...ask });
  assert.deepEqual(bytes.distribution, plain.distribution);
});

test("decisions whose answers were lost are sampled once", async () => {
  const surefoot = await client();
  await surefoot.createPolicy(GREET);
  const before = (await surefoot.policy("greet")).decisions;
  const proxy = await dropping(rl.baseURL, 2);
  const unlucky = new Surefoot({ baseURL: proxy.url, maxRetries: 2 });
  const made = await unlucky.decide("greet", { embedding: seen(4) });
  assert.equal(proxy.count, 3);
  assert.equal((await surefoot.policy("greet")).decisions, before + 1);
  assert.deepEqual((await surefoot.explain(made.decision_id)).decision, made);
  proxy.close();
});

test("a reward whose answer was lost counts once", async () => {
  const surefoot = await client();
  await surefoot.createPolicy(GREET);
  const { decision_id } = await surefoot.decide("greet", { embedding: seen(5) });
  const proxy = await dropping(rl.baseURL, 1);
  const { rewards } = await surefoot.policy("greet");
  assert.equal((await new Surefoot({ baseURL: proxy.url }).reward(decision_id, 1)).status, "replayed");
  assert.equal((await surefoot.policy("greet")).rewards, rewards + 1);
  proxy.close();
});

test("what must not be done twice is not tried twice", async () => {
  await client();
  const proxy = await dropping(rl.baseURL, 9);
  await assert.rejects(new Surefoot({ baseURL: proxy.url }).rollback("nobody"), ConnectionFailed);
  assert.equal(proxy.count, 1);
  proxy.close();
});

test("errors have a class by status, and the fields of the problem", async () => {
  const surefoot = await client();
  await surefoot.createPolicy(GREET);
  await assert.rejects(surefoot.decide("nobody", { embedding: seen(0) }), NotFound);
  await assert.rejects(surefoot.createPolicy({ ...GREET, seed: 1 }), Conflict);
  await assert.rejects(surefoot.decide("greet", { embedding: [1, 2] }), (why) => {
    assert.ok(why instanceof Invalid && why instanceof StatusError && why instanceof SurefootError);
    assert.deepEqual([why.status, why.type, why.pointer], [422, "about:surefoot/invalid", "/embedding"]);
    assert.match(why.message, /2 numbers; this policy expects 8/);
    assert.match(why.requestId as string, /^[0-9a-f]{32}$/);
    return true;
  });
  await assert.rejects(new Surefoot({ baseURL: "http://127.0.0.1:9", maxRetries: 0 }).health(), ConnectionFailed);
});

test("tokens and rates", async () => {
  const tokens = join(folder, "tokens");
  writeFileSync(tokens, `${"r".repeat(20)} read\n${"a".repeat(20)}\n`);
  const { child, url } = await serve("--dir", join(folder, "guarded"), "--token-file", tokens, "--rate", "6");
  await assert.rejects(new Surefoot({ baseURL: url }).policies(), Unauthorized);
  assert.deepEqual(await new Surefoot({ baseURL: url, token: "a".repeat(20) }).policies(), []);
  await assert.rejects(new Surefoot({ baseURL: url, token: "r".repeat(20) }).createPolicy(GREET), Forbidden);
  const hasty = new Surefoot({ baseURL: url, maxRetries: 0 });
  const told = await Promise.allSettled(Array.from({ length: 20 }, () => hasty.health()));
  assert.ok(told.some((one) => one.status === "rejected" && one.reason instanceof RateLimited));
  child.stdin?.end();
});

test("a long Retry-After is capped", async () => {
  const service = await answering(503, { "retry-after": "259200" });
  const begin = Date.now();
  const surefoot = new Surefoot({ baseURL: service.url, maxRetries: 2, maxRetryAfter: 50 });
  await assert.rejects(surefoot.health(), (why) => why instanceof Unavailable && why.retryAfter === 259_200_000);
  assert.equal(service.count, 3);
  assert.ok(Date.now() - begin < 30_000);
  service.close();
});

test("waiting for a retry ends when the caller says so", async () => {
  const service = await answering(429, { "retry-after": "60" });
  const stop = new AbortController();
  const begin = Date.now();
  const asked = new Surefoot({ baseURL: service.url, maxRetryAfter: 60_000 }).health({ signal: stop.signal });
  setInterval(() => service.count > 0 && stop.abort("enough"), 100).unref();
  await assert.rejects(asked, (why) => why instanceof SurefootError && why.name === "AbortError" && why.cause === "enough");
  assert.ok(Date.now() - begin < 30_000);
  assert.equal(service.count, 1);
  service.close();
});

test("a try that takes too long is given up", async () => {
  const never: typeof fetch = (_, init) =>
    new Promise((_, reject) => init?.signal?.addEventListener("abort", () => reject(new Error("aborted"))));
  const asked = new Surefoot({ fetch: never, timeout: 20, maxRetries: 1 }).health();
  await assert.rejects(asked, (why) => why instanceof TimedOut && /within 20 ms/.test(why.message));
});

test("it can be required as well as imported", () => {
  const required = createRequire(import.meta.url)("@surefoot/client") as typeof import("@surefoot/client");
  assert.equal(typeof required.Surefoot, "function");
  assert.notEqual(required.Surefoot, Surefoot);
});

test("the main entry takes nothing of Node", () => {
  const found = new Set<string>();
  const walk = (file: string) => {
    if (found.has(file)) return;
    found.add(file);
    for (const [, from] of readFileSync(file, "utf8").matchAll(/from "([^"]+)"/g)) {
      assert.ok(from!.startsWith("."), `${file} imports ${from}`);
      walk(join(dirname(file), from!));
    }
  };
  walk(join(ROOT, "dist/esm/index.js"));
  assert.ok(found.size > 8);
});
