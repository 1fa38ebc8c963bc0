import { composePolicyLoss, defaultPolicyLoss, policyLosses, preparePolicyLoss } from "@cria/algorithms";
import type { LossFunction, TrainSequence } from "@cria/core";
import { checkGradients, makeNormals, TinyModels } from "@cria/engine/testing";
import { afterAll, describe, expect, it } from "vitest";

const models = new TinyModels();
afterAll(() => models.cleanUp());

/** Log-ratios away from every kink: untouched, clipped above and below. */
const logRatios = [0.05, -0.1, 0.5, -0.5, 0.1, -0.05];

/** Three sequences, two of which share a prefix, with advantages of both signs and a correction's weights. */
function makeSequences(): Omit<TrainSequence, "columns">[] {
  const normal = makeNormals(7);
  const tokens = (n: number) => Array.from({ length: n }, () => Math.abs(Math.floor(normal() * 1000)) % 256);
  const prefix = tokens(6);
  return [[...prefix, ...tokens(7)], [...prefix, ...tokens(4)], tokens(11)].map((tokenIds) => ({
    tokenIds,
    lossMask: tokenIds.map((_, t) => (t > 3 && t % 4 !== 1 ? 1 : 0)),
  }));
}

/**
 * For cispo and dppo the gradient treats the ratio as a constant. Here their old logprobs move with the logprobs, so
 * that finite differences treat it as a constant too.
 */
function freezeRatio(loss: LossFunction): LossFunction {
  const start = new Map<number, number[]>();
  return (inputs) => {
    const oldLogprobs = inputs.columns.oldLogprobs!.slice();
    inputs.sequenceIndices.forEach((sequence, s) => {
      const [from, to] = [inputs.offsets[s]!, inputs.offsets[s + 1]!];
      const first = start.get(sequence) ?? [...inputs.logprobs.slice(from, to)];
      start.set(sequence, first);
      for (let i = from; i < to; i++) oldLogprobs[i]! += inputs.logprobs[i]! - first[i - from]!;
    });
    return loss({ ...inputs, columns: { ...inputs.columns, oldLogprobs } });
  };
}

describe("gradients of policy losses through the native trainer", () => {
  it.each(policyLosses.names())("%s", async (lossMode) => {
    const model = await models.load(
      { seed: 3 },
      { trainable: "lora", lora: { rank: 2, alpha: 4, targets: ["attn_q", "attn_v", "ffn_down"] } },
    );
    const normal = makeNormals(3);
    for (const { name, shape } of model.listTensors().filter((t) => t.name.endsWith(".lora_b")))
      await model.writeTensor(
        name,
        Float32Array.from({ length: shape[0]! * shape[1]! }, () => 0.1 * normal()),
      );
    const options = {
      ...defaultPolicyLoss,
      lossMode,
      clipCovRatio: 0.2,
      clipCovLb: -1,
      klCovRatio: 0.3,
      droBeta: 0.3,
      entropyCoeff: 0.01,
      kl: { coefficient: 0.05, type: "k3" },
    };
    const sequences = makeSequences();
    const logprobs = (await model.score(sequences, { temperature: 0.9 })).map((score) => score.logprobs);
    const batch = sequences.map((sequence, s): TrainSequence => {
      const column = (value: (t: number) => number) => Float32Array.from(sequence.tokenIds, (_, t) => value(t));
      return {
        ...sequence,
        columns: {
          oldLogprobs: column((t) => logprobs[s]![t]! - logRatios[t % logRatios.length]!),
          refLogprobs: column((t) => logprobs[s]![t]! + 0.3 * Math.sin(t)),
          // gspo's gradient is straight-through; it equals the derivative if all tokens of a sequence have the same
          // weight.
          advantages: column((t) => (lossMode === "gspo" ? 1.3 - s : Math.cos(3 * t + s) + 0.4)),
          rolloutIsWeights: column((t) => (lossMode === "gspo" ? 1.1 : 1 + 0.3 * Math.sin(2 * t))),
        },
      };
    });
    const prepared = preparePolicyLoss(options, batch, logprobs, () => 0.5);
    const loss = composePolicyLoss(options);
    const isFrozen = /^(cispo|dppo_.*)$/.test(lossMode);
    const checks = await checkGradients(model, prepared, isFrozen ? freezeRatio(loss) : loss, {
      temperature: 0.9,
    });
    expect(checks.length).toBeGreaterThan(6);
    for (const check of checks) expect(Math.abs(check.analytic), check.name).toBeGreaterThan(1e-4);
    expect(checks.filter((c) => c.relativeError > 1e-2)).toEqual([]);
  });
});
