import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { LlamaModel, LoadModelOptions } from "./index.js";
import { loadModel } from "./index.js";
import {
  checkGradients,
  makeNormals,
  makeTinyModel,
  makeTreeBatch,
  type TinyModelOptions,
  textArchitectures,
  weightedLogprobs,
} from "./testing/index.js";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "cria-gradients-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let files = 0;
async function load(tiny: TinyModelOptions, options: Omit<LoadModelOptions, "path">): Promise<LlamaModel> {
  const path = join(folder, `${files++}.gguf`);
  await makeTinyModel(path, tiny);
  return loadModel({ path, contextSize: 64, maxSequences: 2, threads: 1, ...options });
}

async function randomizeLoraB(model: LlamaModel) {
  const normal = makeNormals(3);
  for (const { name, shape } of model.listTensors().filter((t) => t.name.endsWith(".lora_b"))) {
    await model.writeTensor(
      name,
      Float32Array.from({ length: shape.reduce((product, n) => product * n, 1) }, () => 0.1 * normal()),
    );
  }
}

const attention = ["attn_q", "attn_k", "attn_v", "attn_qkv", "attn_output"];
const convolution = ["shortconv.in_proj", "shortconv.out_proj"];
const states = ["attn_gate", "ssm_in", "ssm_alpha", "ssm_beta", "ssm_out"]; // beside attn_qkv
const experts = ["ffn_gate_inp", "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"];
/** A weight of the first layer that other architectures lack, or attn_k. */
const FIRST: Record<string, string> = {
  lfm2: "shortconv.conv",
  phi3: "attn_qkv",
  qwen35: "ssm_conv1d",
  granitehybrid: "ssm_in",
};
/** Linear layers, if not seven a layer: half of some models' layers have others in place of attention's four. */
const LINEAR: Record<string, number> = { lfm2: 6, phi3: 4, qwen35: 7.5, granitehybrid: 6, qwen3moe: 8, "gpt-oss": 8 };

// Rows are trees whose branches branch again; training.test.ts counts their tokens.
describe("gradients against finite differences", () => {
  for (const architecture of textArchitectures) {
    it(`${architecture}: every base weight (full training)`, async () => {
      const model = await load({ architecture }, { trainable: "full" });
      // Short vectors that are divided by their length bend the loss of qwen35 within a longer step.
      const step = architecture === "qwen35" ? 1e-3 : 2e-3;
      const checks = await checkGradients(model, makeTreeBatch(), weightedLogprobs, { step, temperature: 0.8 });
      const names = checks.map((c) => c.name);
      expect(names).toContain(`blk.0.${FIRST[architecture] ?? "attn_k"}.weight`);
      expect(names).toContain(`blk.1.${architecture === "phi3" ? "attn_qkv" : "attn_v"}.weight`);
      expect(names).toEqual(
        model
          .listTensors()
          .map(({ name }) => name)
          .filter((name) => !name.startsWith("rope_")),
      );
      // A gradient that is silently zero would pass a relative test: each must carry signal.
      for (const check of checks) expect(Math.abs(check.analytic), check.name).toBeGreaterThan(1e-3);
      expect(checks.filter((c) => c.relativeError > 5e-3)).toEqual([]);
      await model.dispose();
    });

    it(`${architecture}: every LoRA weight`, async () => {
      const model = await load(
        { architecture, tied: false },
        {
          lora: {
            rank: 4,
            alpha: 8,
            targets: [...attention, ...convolution, ...states, ...experts, "ffn_gate", "ffn_up", "ffn_down", "output"],
          },
        },
      );
      await randomizeLoraB(model);
      const checks = await checkGradients(model, makeTreeBatch(), weightedLogprobs);
      const names = checks.map((c) => c.name);
      const isFused = architecture === "phi3";
      for (const part of isFused ? ["attn_qkv"] : ["attn_k", "attn_v"]) {
        for (const side of ["a", "b"]) expect(names).toContain(`blk.1.${part}.weight.lora_${side}`);
      }
      expect(names.length).toBe(2 * (model.info.layerCount * (LINEAR[architecture] ?? 7) + 1));
      for (const check of checks) expect(Math.abs(check.analytic), check.name).toBeGreaterThan(1e-3);
      expect(checks.filter((c) => c.relativeError > 5e-3)).toEqual([]);
      await model.dispose();
    });
  }
});

// States are kept every 64 tokens: two sequences share 70 tokens, and go on for more than that each.
describe.each(["qwen35", "granitehybrid"] as const)(
  "states of %s over more tokens than are kept at once",
  (architecture) => {
    const normal = makeNormals(5);
    const draw = (count: number) => Array.from({ length: count }, () => Math.abs(Math.floor(normal() * 997)) % 256);
    const shared = draw(70);
    const sequences = [150, 90].map((count) => [...shared, ...draw(count)]);

    it("have the gradients of finite differences", async () => {
      const model = await load(
        { architecture, layers: 2, embeddingScale: 0.1 },
        { trainable: "full", contextSize: 256 },
      );
      const batch = sequences.map((tokenIds) => ({
        tokenIds,
        lossMask: tokenIds.map((_, t) => (t > 0 && t % 3 === 0 ? 1 : 0)),
        columns: { weights: tokenIds.map(() => normal()) },
      }));
      const { evaluatedTokens } = await model.train(batch, weightedLogprobs, null);
      await model.zeroGradients();
      expect(evaluatedTokens).toBe(312); // the shared tokens once, and two of padding
      const names = ["blk.0.ssm_a", "blk.0.ssm_conv1d.weight", "blk.0.ssm_out.weight", "token_embd.weight"];
      const checks = await checkGradients(model, batch, weightedLogprobs, {
        step: 1e-3,
        names: (name) => names.includes(name),
      });
      expect(checks.length).toBe(names.length);
      for (const check of checks) expect(Math.abs(check.analytic), check.name).toBeGreaterThan(1e-3);
      expect(checks.filter((check) => check.relativeError > 5e-3)).toEqual([]);
      await model.dispose();
    });

    it("give the logprobs that decoding reported", async () => {
      const model = await load(
        { architecture, layers: 2, embeddingScale: 0.1 },
        { lora: { rank: 2 }, contextSize: 256 },
      );
      const answers = await Promise.all(
        sequences.map((tokens) => model.createSequence().generate(tokens, { maxTokens: 6, seed: 3, stopTokens: [] })),
      );
      const scores = await model.score(
        answers.map(({ tokenIds }, i) => ({ tokenIds: [...sequences[i]!, ...tokenIds], from: sequences[i]!.length })),
      );
      for (const [i, { logprobs }] of answers.entries())
        for (const [t, logprob] of logprobs.entries())
          expect(Math.abs(logprob - scores[i]!.logprobs[sequences[i]!.length + t]!)).toBeLessThan(1e-5);
      await model.dispose();
    });
  },
);
