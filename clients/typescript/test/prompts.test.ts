import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { HashingEncoder, MUTATIONS, allowed, classify, mutate, score, tokens, type MutationType } from "@surefoot/client";
import { PYTHON, ROOT } from "./shared.js";

const PROMPTS = [
  "Write a Python function that sorts a list of numbers and handles empty input",
  "Could you please explain what a REST API is? In other words, tell me how it works. It is important to note that I am a beginner.",
  "Fix this bug: the login page crashes. Then add tests; finally update the docs.",
  "If the user is logged in, greet them. They must see their name.",
  "Create a landing page for our coffee brand with a sign-up form and testimonials.",
  "Analyze the sales data in the attached CSV and compare the regions, for example by plotting revenue per quarter with error bars.",
  "- collect the data\n- clean it\n2) plot it\n   3. report",
  "Write a haiku about snow",
  "Hi there! I would like you to just really very simply write an essay about naïve Übermenschen – with “quotes” and {placeholders}, in 300 words.",
  "اكتب قصة قصيرة عن البحر. هل يمكنك؟",
  "optimize this SQL query: SELECT * FROM t WHERE x_y = 'a_b';\r\nIt is slow\u2028and nobody knows why",
  "ΣΊΣΥΦΟΣ İstanbul ﬁne 𝒳² 東京 it's don't e\u0301",
  "🙂 hello 🙂",
  "   \n\t ",
  "",
  "Review the code of the payment service for security vulnerabilities and describe how each of them could be used by an attacker, " +
    "what it would cost to mend and whether customers need to be told. The service is old. It was written by people who left. " +
    "Nobody likes it. The weather was fine when it was deployed on a Friday afternoon in the summer of that year.",
  "Translate to French\n\nConstraints:\n- answer in the first sentence\n- keep it below 150 words",
];

interface Expected {
  dims: number[];
  prompts: {
    category: string;
    confidence: number;
    characteristics: string[];
    tokens: number;
    breakdown: Record<string, number>;
    score: number;
    embeddings: number[][];
  }[];
}

const told = JSON.parse(
  execFileSync(PYTHON, ["test/expected.py"], { cwd: ROOT, input: JSON.stringify(PROMPTS), encoding: "utf8", maxBuffer: 1 << 27 }),
) as Expected;
const each = (look: (prompt: string, expected: Expected["prompts"][number]) => void) =>
  PROMPTS.forEach((prompt, i) => look(prompt, told.prompts[i]!));

test("texts are hashed to the digits of Python's encoder", () => {
  each((prompt, { embeddings }) => {
    told.dims.forEach((dim, i) => {
      assert.deepEqual(new HashingEncoder(dim).encode(prompt), Float32Array.from(embeddings[i]!), `${dim}: ${prompt}`);
    });
  });
});

/** Words, numbers and question marks of a prompt that a text has fewer of. */
function lost(prompt: string, text: string): string[] {
  const counts = new Map<string, number>();
  const parts = (of: string) => of.toLowerCase().match(/[\p{L}\p{M}]+|\p{N}+|\?/gu) ?? [];
  for (const part of parts(text)) counts.set(part, (counts.get(part) ?? 0) + 1);
  return parts(prompt).filter((part) => {
    counts.set(part, (counts.get(part) ?? 0) - 1);
    return (counts.get(part) as number) < 0;
  });
}

test("words are removed only where that was asked for", () => {
  const prompt = "Please just really explain to me what tea is made of.";
  assert.equal(allowed(prompt)[1], false);
  assert.equal(allowed(prompt, { allowCut: true })[1], true);
  assert.equal(mutate(prompt, "context-reduction").text, "Explain to me what tea is made of.");
});

test("every mutation that is allowed changes the prompt and loses no word of it", () => {
  let changed = 0;
  PROMPTS.forEach((prompt) => {
    allowed(prompt).forEach((possible, i) => {
      if (!possible) return;
      changed++;
      const { text } = mutate(prompt, i);
      assert.notEqual(text, prompt, `${MUTATIONS[i]}: ${prompt}`);
      assert.deepEqual(lost(prompt, text), [], `${MUTATIONS[i]}: ${prompt}`);
    });
  });
  assert.ok(changed > 15);
});

test("prompts are classified and linted as Python does", () => {
  each((prompt, expected) => {
    const { category, confidence, characteristics } = expected;
    assert.deepEqual(classify(prompt), { category, confidence, characteristics }, prompt);
    assert.equal(tokens(prompt), expected.tokens);
    const seen = score(prompt);
    for (const [name, value] of Object.entries(expected.breakdown)) {
      assert.ok(Math.abs(seen.breakdown[name]! - value) < 1e-12, `${name}: ${prompt}`);
    }
    assert.ok(Math.abs(seen.score - expected.score) < 1e-12, prompt);
  });
});

test("a mutation that nobody knows is named", () => {
  assert.throws(() => mutate("Write a poem", "shout" as MutationType), /there is no mutation shout; there are try-catch-style/);
  assert.throws(() => mutate("Write a poem", 5), /0 to 4/);
});
