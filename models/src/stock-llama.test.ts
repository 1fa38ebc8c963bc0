import { loadModel } from "@cria/engine";
import { ChatTemplate } from "@cria/tokenizer-delta";
import { getLlama, JinjaTemplateChatWrapper, LlamaLogLevel } from "node-llama-cpp";
import { describe, expect, it } from "vitest";
import { calculatorSchema, embeddedPolicyPath, makePrompt } from "./index.js";

const question = "Ann has 12 apples and buys 30 more. How many apples does Ann have?";

describe("stock llama.cpp", () => {
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
