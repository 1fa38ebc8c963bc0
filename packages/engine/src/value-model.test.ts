import type { TrainSequence } from "@cria/core";
import { afterAll, describe, expect, it } from "vitest";
import { type LoadValueModelOptions, loadValueModel, type ValueModel } from "./internal.js";
import { type CheckedModel, checkGradients, makeNormals, TinyModels, weightedLogprobs } from "./testing/index.js";

const models = new TinyModels();
const critics: ValueModel[] = [];
afterAll(async () => {
  await Promise.all(critics.map((critic) => critic.dispose()));
  await models.cleanUp();
});

async function load(path: string, options: Omit<LoadValueModelOptions, "path">): Promise<ValueModel> {
  const critic = await loadValueModel({ path, threads: 1, ...options });
  critics.push(critic);
  return critic;
}

const normal = makeNormals(8);

function makeBatch(): TrainSequence[] {
  return [17, 9, 13].map((length) => {
    const tokenIds = Array.from({ length }, () => Math.abs(Math.floor(normal() * 1000)) % 256);
    return {
      tokenIds,
      lossMask: tokenIds.map((_, t) => (t > 2 ? 1 : 0)),
      columns: { weights: tokenIds.map(() => normal()) },
    };
  });
}

/** Presents a critic as a model whose logprobs are its values. */
const asModel = (critic: ValueModel): CheckedModel => ({
  train: (batch, loss, optimizer) =>
    critic.train(
      batch,
      ({ values, ...inputs }) => {
        const outputs = loss({ ...inputs, logprobs: values, entropy: new Float32Array(values.length) });
        return { loss: outputs.loss, dValues: outputs.dLogprobs };
      },
      optimizer,
    ),
  zeroGradients: () => critic.zeroGradients(),
  listTensors: () => critic.listTensors(),
  readTensor: (name, part) => critic.readTensor(name, part),
  writeTensor: (name, values, part) => critic.writeTensor(name, values, part),
});

describe("a critic", () => {
  it("begins at 0 and reads the same hidden states as the LM head", async () => {
    const path = await models.write({ architecture: "qwen3" });
    const [policy, critic] = [
      await models.load({}, { path, trainable: "full" }),
      await load(path, { trainable: "full" }),
    ];
    const [tokenIds] = makeBatch().map((sequence) => Int32Array.from(sequence.tokenIds));
    expect([...(await critic.values([{ tokenIds: tokenIds! }]))[0]!].every((value) => value === 0)).toBe(true);
    // With a row of the tied embedding as its weights, the value is that token's logit.
    const { shape } = policy.listTensors().find((t) => t.name === "token_embd.weight")!;
    const embedding = await policy.readTensor("token_embd.weight");
    const logits = [];
    for (const token of [5, 9]) {
      await critic.writeTensor("value_head.weight", embedding.slice(token * shape[0]!, (token + 1) * shape[0]!));
      logits.push((await critic.values([{ tokenIds: [...tokenIds!, 0] }]))[0]!.at(-1)!);
    }
    const scores = await policy.score([5, 9].map((token) => ({ tokenIds: [...tokenIds!, token] })));
    const [a, b] = scores.map(({ logprobs }) => logprobs.at(-1)!);
    expect(logits[0]! - logits[1]!).toBeCloseTo(a! - b!, 4);
  });

  for (const trainable of ["full", "lora"] as const) {
    it(`${trainable}: every gradient against finite differences, the head's by name`, async () => {
      const lora = trainable === "lora" ? { rank: 4, alpha: 8 } : null;
      const critic = await load(await models.write({ architecture: "qwen2" }), { trainable, lora });
      for (const { name, shape, trainable: trained } of critic.listTensors()) {
        if (!trained || !(name.startsWith("value_head") || name.endsWith("lora_b"))) continue;
        const size = shape.reduce((product, n) => product * n, 1);
        await critic.writeTensor(
          name,
          Float32Array.from({ length: size }, () => 0.3 * normal()),
        );
      }
      const checks = await checkGradients(asModel(critic), makeBatch(), weightedLogprobs);
      expect(checks.map((c) => c.name)).toEqual(expect.arrayContaining(["value_head.weight", "value_head.bias"]));
      for (const check of checks) expect(Math.abs(check.analytic), check.name).toBeGreaterThan(1e-4);
      expect(checks.filter((c) => c.relativeError > 5e-3)).toEqual([]);
    });
  }

  it("learns returns", async () => {
    const critic = await load(await models.write(), { lora: { rank: 4, alpha: 8 } });
    const batch = makeBatch();
    let last = Number.POSITIVE_INFINITY;
    for (let step = 0; step < 40; step++) {
      const { loss } = await critic.train(
        batch,
        ({ values, columns, totals }) => {
          const errors = values.map((value, i) => value - columns.weights![i]!);
          const loss = errors.reduce((sum, e) => sum + (e * e) / 2, 0) / totals.tokens;
          return { loss, dValues: errors.map((e) => e / totals.tokens) };
        },
        { learningRate: 1e-2 },
      );
      if (step === 0) last = loss;
      if (step === 39) expect(loss).toBeLessThan(0.3 * last);
    }
  });
});
