/** Evaluate a policy in JavaScript, without the service, from the weights of one of its versions. */

import { SurefootError } from "./errors.js";
import { readSafetensors, writeSafetensors, type Tensor, type Weights } from "./safetensors.js";

interface Layer {
  weight: Tensor;
  bias: Float32Array;
  /** Scale and offset of the LayerNorm. */
  gain: Float32Array;
  shift: Float32Array;
}

interface Tower {
  layers: Layer[];
  weight: Tensor;
  bias: Float32Array;
}

/** The choice of an exported policy. */
export interface Choice {
  action: number;
  name: string;
  probability: number;
  distribution: number[];
}

const POLICY = "network.module.policy";
const VALUE = "network.module.value";
const SERVED = ["table", "descriptions", "present", "settings"];

/** What a file's weights compute. */
interface Model {
  size: number;
  count: number;
  /** Actions that were not retired. */
  present: readonly boolean[];
  /** Return the probability of every action; 0 where `allowed` is false. */
  distribution(row: Float32Array, allowed: readonly boolean[]): number[];
  /** Return the expected reward of a choice by `distribution`, from 0 to 1 for a served policy; undefined if the file does not have it. */
  expected(row: Float32Array): number | undefined;
}

/**
 * A policy evaluated without the service, to 1e-5 of what it answers: one of `surefoot serve`, or the network of `--compat directive-023`.
 *
 * It does not answer "none of these" and does not learn.
 */
export class ExportedPolicy {
  /** Length of the embedding. */
  readonly size: number;
  readonly actions: readonly string[];
  /** Name of the encoder of the embeddings, if the file contains it. */
  readonly encoder: string | undefined;
  private readonly model: Model;

  constructor(weights: Weights, actions?: readonly string[]) {
    this.model = weights.tensors.has("table") ? outcomes(weights) : network(weights);
    this.size = this.model.size;
    const count = this.model.count;
    const named = weights.metadata["actions"];
    this.actions = actions ?? (named ? (JSON.parse(named) as string[]) : Array.from({ length: count }, (_, i) => `${i}`));
    if (this.actions.length !== count) {
      throw new SurefootError(`the weights are for ${count} actions but ${this.actions.length} names were passed`);
    }
    this.encoder = weights.metadata["encoder"];
  }

  /** Read the weights.safetensors of a version, or a file written by `exportPolicy`. */
  static read(file: Uint8Array, actions?: readonly string[]): ExportedPolicy {
    return new ExportedPolicy(readSafetensors(file), actions);
  }

  /** Return the probability of every action; 0 where the mask is false, and for retired actions. */
  distribution(embedding: ArrayLike<number>, mask?: readonly boolean[]): number[] {
    const allowed = this.model.present.map((present, action) => present && mask?.[action] !== false);
    if ((mask && mask.length !== this.actions.length) || !allowed.includes(true)) {
      throw new SurefootError(`the mask has ${mask?.length ?? 0} entries and allows ${allowed.filter(Boolean).length} actions; it needs ${this.actions.length}, at least one true`);
    }
    return this.model.distribution(this.checked(embedding), allowed);
  }

  /** Return the expected reward. Throws if the file does not have it. */
  expected(embedding: ArrayLike<number>): number {
    const value = this.model.expected(this.checked(embedding));
    if (value === undefined) throw new SurefootError("this file has no critic; read a version's own weights.safetensors");
    return value;
  }

  /** Choose an action: the most probable one, or a sample if `draw`, a uniform number in [0, 1), is passed. */
  choose(embedding: ArrayLike<number>, options: { mask?: readonly boolean[]; draw?: number } = {}): Choice {
    const distribution = this.distribution(embedding, options.mask);
    let action = distribution.indexOf(Math.max(...distribution));
    if (options.draw !== undefined) {
      let left = options.draw;
      action = distribution.findIndex((p) => (left -= p) < 0);
      if (action < 0) action = distribution.length - 1 - [...distribution].reverse().findIndex((p) => p > 0);
    }
    const probability = distribution[action] as number;
    return { action, name: this.actions[action] as string, probability, distribution };
  }

  private checked(embedding: ArrayLike<number>): Float32Array {
    if (embedding.length !== this.size) {
      throw new SurefootError(`the embedding has ${embedding.length} numbers; this policy needs ${this.size}`);
    }
    const row = Float32Array.from(embedding);
    if (!row.every(Number.isFinite)) throw new SurefootError("the embedding contains NaN or infinity");
    return row;
  }
}

/** Return a version's weights.safetensors without the critic and with the names of its actions: all that `ExportedPolicy` needs. */
export function exportPolicy(file: Uint8Array, about: { actions: readonly string[]; encoder: string }): Uint8Array {
  const { tensors } = readSafetensors(file);
  const needed = new Map([...tensors].filter(([name]) => SERVED.includes(name) || name.startsWith(POLICY)));
  const metadata = { format: "pt", actions: JSON.stringify(about.actions), encoder: about.encoder };
  const weights = { tensors: needed, metadata };
  new ExportedPolicy(weights); // throws if a tensor is missing
  return writeSafetensors(weights);
}

/** The policy of `surefoot serve`: a logistic model of which action is right, docs/explain/choosing.md. */
function outcomes({ tensors }: Weights): Model {
  const named = (name: string): Tensor => {
    const found = tensors.get(name);
    if (!found) throw new SurefootError(`the weights have no ${name}: this is a policy over candidates, or of an earlier version; ask POST /v1/policies/NAME/distribution`);
    if (!found.data.every(Number.isFinite)) throw new SurefootError(`${name} contains NaN or infinity`);
    return found;
  };
  const [table, descriptions] = [named("table"), named("descriptions")];
  const [count, size] = descriptions.shape as [number, number];
  const width = table.shape[1] as number;
  if (width !== size + 1) {
    throw new SurefootError(`this policy also takes ${width - 1 - size} numbers of features, which only the service computes; ask POST /v1/policies/NAME/distribution`);
  }
  const [sharpness = 0, relative = 0, mean = 0, deviation = 1, length = 1, none = 0, spread = 1, floor = 0] = named("settings").data;
  const known = table.shape[0] as number;
  // Below 1e-3 the service takes embeddings for unit vectors, too.
  const scaled = (row: Float32Array): Float32Array => (Math.abs(length - 1) < 1e-3 ? row : row.map((x) => x / length));

  function success(row: Float32Array, allowed: readonly boolean[]): number[] {
    const x = scaled(row);
    const norm = Math.sqrt(x.reduce((sum, value) => sum + value * value, 0)) || 1;
    const logits = allowed.map((possible, action) => {
      if (!possible) return -Infinity;
      let cosine = dot(descriptions, action, x);
      // 0: the action has no description.
      if (relative && cosine !== 0) cosine = (cosine / norm - mean) / deviation;
      return sharpness * cosine + (action < known ? dot(table, action, x) + 0.3 * (table.data[action * width + size] as number) : 0);
    });
    const top = Math.max(none, ...logits);
    const raised = logits.map((z) => Math.exp(z - top));
    const sum = raised.reduce((a, b) => a + b, Math.exp(none - top));
    return raised.map((value) => value / sum);
  }

  function distribution(row: Float32Array, allowed: readonly boolean[]): number[] {
    const chances = softmax(success(row, allowed).map((p, action) => (allowed[action] ? spread * p : -Infinity)));
    const least = Math.min(floor, Math.max(...chances));
    return normalized(chances.map((p) => (p >= least ? p : 0)));
  }

  const present = [...named("present").data].map((x) => x > 0);
  const expected = (row: Float32Array): number => {
    const worth = success(row, present);
    return distribution(row, present).reduce((sum, p, action) => sum + p * (worth[action] as number), 0);
  };
  return { size, count, present, distribution, expected };
}

/** The network embedding → 256 → 256 → 128 → actions of the earlier prompt server. */
function network(weights: Weights): Model {
  const policy = tower(weights, POLICY);
  const value = weights.tensors.has(`${VALUE}.out.weight`) ? tower(weights, VALUE) : undefined;
  const count = policy.bias.length;
  return {
    size: (policy.layers[0] ?? policy).weight.shape[1] as number,
    count,
    present: Array.from({ length: count }, () => true),
    distribution: (row, allowed) => softmax(Array.from(through(policy, row), (x, action) => (allowed[action] ? x : -Infinity))),
    expected: (row) => value && (through(value, row)[0] as number),
  };
}

function softmax(logits: readonly number[]): number[] {
  const most = Math.max(...logits);
  return normalized(logits.map((x) => Math.exp(x - most)));
}

function normalized(values: readonly number[]): number[] {
  const sum = values.reduce((a, b) => a + b, 0);
  return values.map((x) => x / sum);
}

/** Return the product of x with the first numbers of a row. */
function dot({ data, shape }: Tensor, row: number, x: Float32Array): number {
  const begin = row * (shape[1] as number);
  return x.reduce((sum, value, i) => sum + value * (data[begin + i] as number), 0);
}

function tower({ tensors }: Weights, name: string): Tower {
  const named = (end: string): Tensor => {
    const found = tensors.get(`${name}.${end}`);
    if (!found) throw new SurefootError(`the weights have no ${name}.${end}; this is not a policy of the service`);
    if (!found.data.every(Number.isFinite)) throw new SurefootError(`${name}.${end} contains NaN or infinity`);
    return found;
  };
  const layers: Layer[] = [];
  for (let place = 0; tensors.has(`${name}.trunk.${place}.weight`); place += 3) {
    layers.push({
      weight: named(`trunk.${place}.weight`),
      bias: named(`trunk.${place}.bias`).data,
      gain: named(`trunk.${place + 1}.weight`).data,
      shift: named(`trunk.${place + 1}.bias`).data,
    });
  }
  return { layers, weight: named("out.weight"), bias: named("out.bias").data };
}

function through({ layers, weight, bias }: Tower, row: Float32Array): Float32Array {
  let x = row;
  for (const layer of layers) {
    x = linear(layer.weight, layer.bias, x);
    const mean = x.reduce((a, b) => a + b, 0) / x.length;
    const spread = x.reduce((a, b) => a + (b - mean) ** 2, 0) / x.length;
    const scale = 1 / Math.sqrt(spread + 1e-5);
    x = x.map((value, i) =>
      Math.max(0, (value - mean) * scale * (layer.gain[i] as number) + (layer.shift[i] as number)),
    );
  }
  return linear(weight, bias, x);
}

function linear(weight: Tensor, bias: Float32Array, x: Float32Array): Float32Array {
  const width = x.length;
  return bias.map((sum, row) => {
    for (let i = 0; i < width; i++) sum += (weight.data[row * width + i] as number) * (x[i] as number);
    return sum;
  });
}
