/** Evaluate a trained policy in JavaScript, without the service, from the weights of one of its versions. */

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

/** The network embedding → 256 → 256 → 128 → actions; its outputs agree with the service's to 1e-5. */
export class ExportedPolicy {
  /** Length of the embedding. */
  readonly size: number;
  readonly actions: readonly string[];
  /** Name of the encoder of the embeddings, if the file contains it. */
  readonly encoder: string | undefined;
  private readonly policy: Tower;
  private readonly value: Tower | undefined;

  constructor(weights: Weights, actions?: readonly string[]) {
    this.policy = tower(weights, POLICY);
    this.value = weights.tensors.has(`${VALUE}.out.weight`) ? tower(weights, VALUE) : undefined;
    this.size = (this.policy.layers[0] ?? this.policy).weight.shape[1] as number;
    const count = this.policy.bias.length;
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

  logits(embedding: ArrayLike<number>): Float32Array {
    return through(this.policy, this.checked(embedding));
  }

  /** Return the probability of every action; 0 where the mask is false. */
  distribution(embedding: ArrayLike<number>, mask?: readonly boolean[]): number[] {
    if (mask && (mask.length !== this.actions.length || !mask.includes(true))) {
      throw new SurefootError(`the mask has ${mask.length} entries, ${mask.filter(Boolean).length} of them true; it needs ${this.actions.length}, at least one true`);
    }
    const logits = Array.from(this.logits(embedding), (x, action) => (mask?.[action] === false ? -Infinity : x));
    const most = Math.max(...logits);
    const spread = logits.map((x) => Math.exp(x - most));
    const sum = spread.reduce((a, b) => a + b, 0);
    return spread.map((x) => x / sum);
  }

  /** Return the critic's estimate of the reward. Throws if the file has no critic. */
  expected(embedding: ArrayLike<number>): number {
    if (!this.value) throw new SurefootError("this file has no critic; read a version's own weights.safetensors");
    return through(this.value, this.checked(embedding))[0] as number;
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
  const policyTensors = new Map([...tensors].filter(([name]) => name.startsWith(POLICY)));
  const metadata = { format: "pt", actions: JSON.stringify(about.actions), encoder: about.encoder };
  const weights = { tensors: policyTensors, metadata };
  new ExportedPolicy(weights); // throws if a tensor is missing
  return writeSafetensors(weights);
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
