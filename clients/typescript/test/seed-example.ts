/** The usage example of the system that this interface comes from: only its import line is another, and its names of arguments are gone. */

import { RLTrainer } from "@surefoot/client/rl";

const prompts = ["Write a Python function that sorts a list, and test it"];

const trainer = new RLTrainer();
await trainer.start();

const stats = await trainer.train(
  prompts,
  100,
  5,
  10
);

console.log(`Final avg reward: ${stats.avgReward}`);
trainer.stop();
