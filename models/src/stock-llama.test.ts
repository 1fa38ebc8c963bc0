import { join } from "node:path";
import type { OptimizerOptions } from "@cria/core";
import { exportModel, loadModel } from "@cria/engine";
import { TinyModels, weightedLogprobs } from "@cria/engine/testing";
import { ChatTemplate } from "@cria/tokenizer-delta";
import { getLlama, JinjaTemplateChatWrapper, LlamaLogLevel, type Token } from "node-llama-cpp";
import { afterAll, describe, expect, it } from "vitest";
import { calculatorSchema, embeddedPolicyPath, makePrompt } from "./index.js";

const question = "Ann has 12 apples and buys 30 more. How many apples does Ann have?";

const models = new TinyModels();
afterAll(() => models.cleanUp());

describe("stock llama.cpp", () => {
  // A few tokens: stock llama.cpp rounds keys, values and GELU to F16, and may decide ties otherwise.
  it.each([
    "qwen3",
    "gemma3",
    "smollm3",
    "granite",
    "llama3",
    "lfm2",
    "phi3",
    "mistral3",
    "qwen35",
    "granitehybrid",
    "qwen3moe",
    "gpt-oss",
  ] as const)("speaks as a trained %s does, by its adapter and merged", async (family) => {
    const architecture = family === "llama3" ? "llama" : family;
    const ropeFactors = family === "llama3";
    const path = await models.write({
      architecture,
      ropeFactors,
      embedding: 64,
      feedForward: 64,
      // With 0.1 two tokens of lfm2 are 0.001 nats apart.
      embeddingScale: ["lfm2", "qwen35"].includes(family) ? 0.3 : 0.1,
    });
    const experts = ["ffn_gate_inp", "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"];
    const targets = family === "qwen3moe" || family === "gpt-oss" ? ["attn_q", "attn_v", ...experts] : undefined;
    const ours = await models.load({}, { path, lora: { rank: 4, alpha: 32, targets } });
    const prompt = [72, 101, 108, 108, 111, 44, 32, 119, 111, 114];
    const speak = async () => {
      const sequence = ours.createSequence();
      const { tokenIds } = await sequence.generate(prompt, { maxTokens: 8, temperature: 0, stopTokens: [] });
      sequence.dispose();
      return [...tokenIds];
    };
    const untrained = await speak();
    const columns = { weights: prompt.map(() => -1) };
    for (let step = 0; step < 4; step++) {
      const optimizer: OptimizerOptions = {
        learningRate: 0.05,
        betas: [0.9, 0.95],
        epsilon: 1e-8,
        weightDecay: 0,
        maxGradNorm: 1,
      };
      await ours.train(
        [{ tokenIds: prompt, lossMask: prompt.map((_, t) => (t > 0 ? 1 : 0)), columns }],
        weightedLogprobs,
        optimizer,
      );
    }
    const trained = await speak();
    expect(trained).not.toEqual(untrained);
    const [adapter, merged] = [
      join(models.folder, `${family}-adapter.gguf`),
      join(models.folder, `${family}-merged.gguf`),
    ];
    await ours.saveAdapter(adapter);
    await exportModel({ base: path, adapter, output: merged });
    const llama = await getLlama({ gpu: false, build: "never", logLevel: LlamaLogLevel.error, maxThreads: 1 });
    try {
      for (const [modelPath, lora] of [
        [path, { adapters: [{ filePath: adapter, scale: 1 }] }],
        [merged, undefined],
      ] as const) {
        const stock = await llama.loadModel({ modelPath });
        const context = await stock.createContext({
          contextSize: 256,
          threads: 1,
          lora: lora && { adapters: [...lora.adapters] },
        });
        const tokens: number[] = [];
        for await (const token of context
          .getSequence()
          .evaluate(prompt as Token[], { temperature: 0, yieldEogToken: true })) {
          tokens.push(token);
          if (tokens.length === 8) break;
        }
        // `llama.dispose()` waits for ever if the garbage collector takes a context with an adapter first.
        await context.dispose();
        await stock.dispose();
        expect(tokens).toEqual(trained);
      }
    } finally {
      await llama.dispose();
    }
  });

  it("loads the policy and its template, and speaks the same greedy text", async () => {
    const llama = await getLlama({ gpu: false, build: "never", logLevel: LlamaLogLevel.error, maxThreads: 1 });
    const stock = await llama.loadModel({ modelPath: embeddedPolicyPath });
    const ours = await loadModel({ path: embeddedPolicyPath, contextSize: 256, maxSequences: 1, threads: 1 });
    try {
      expect(stock.fileInfo.metadata.tokenizer.chat_template).toBe(ours.chatTemplate);
      const text = new ChatTemplate(ours.chatTemplate!).render(makePrompt(question), {
        tools: [calculatorSchema],
        addGenerationPrompt: true,
      });
      const prompt = stock.tokenize(text, true);
      expect(prompt).toEqual([...ours.tokenize(text)]);

      const context = await stock.createContext({ contextSize: 256, threads: 1 });
      const expected: number[] = [];
      for await (const token of context.getSequence().evaluate(prompt, { temperature: 0, yieldEogToken: true })) {
        expected.push(token);
        if (stock.isEogToken(token) || expected.length === 24) break;
      }
      const sequence = ours.createSequence();
      const { tokenIds } = await sequence.generate(ours.tokenize(text), { maxTokens: 24, temperature: 0 });
      expect([...tokenIds]).toEqual(expected);

      const wrapper = new JinjaTemplateChatWrapper({ template: ours.chatTemplate! });
      const { contextText } = wrapper.generateContextState({
        chatHistory: [
          { type: "system", text: "Be brief." },
          { type: "user", text: question },
          { type: "model", response: [] },
        ],
      });
      expect(contextText.toString()).toContain(question);
    } finally {
      await ours.dispose();
      await llama.dispose();
    }
  });
});
