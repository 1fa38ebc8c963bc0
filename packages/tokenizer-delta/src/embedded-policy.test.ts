import { join } from "node:path";
import { type LlamaModel, loadModel } from "@cria/engine";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { checkConversation, DeltaTokenizer, InferenceConversation, ownText } from "./internal.js";
import { comparePaths } from "./matrix/compare-paths.js";
import { conversations } from "./matrix/conversations.js";

fc.configureGlobal({ seed: Number(process.env.CRIA_SEED ?? 1) });

const { messages, tools } = conversations["rounds of calls"]!;
let model: LlamaModel;
let tokenizer: DeltaTokenizer;

beforeAll(async () => {
  const path = join(import.meta.dirname, "..", "..", "..", "models", "cria-tiny.gguf");
  model = await loadModel({ path, contextSize: 512, maxSequences: 2, threads: 1, lora: { rank: 4 } });
  tokenizer = DeltaTokenizer.forModel(model);
});
afterAll(() => model.dispose());

describe("the embedded policy: its own template and vocabulary", () => {
  it.each(Object.keys(conversations))("8. %s: deltas add up to the whole rendering", (name) => {
    const { outcome, detail, inferenceEqual } = comparePaths(tokenizer, conversations[name]!);
    expect({ outcome, detail, inferenceEqual }).toEqual({ outcome: "equal", detail: "", inferenceEqual: true });
  });

  it("tokens of any text are the engine's own, and its list of special tokens is the GGUF's", () => {
    const tokens = model.listSpecialTokens();
    const control = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"];
    expect(tokens.filter((token) => token.control).map((token) => token.text)).toEqual(control);
    const words = ["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"];
    expect(tokens.filter((token) => !token.control).map((token) => token.text)).toEqual(words);
    for (const { id, text } of tokens) expect([...model.tokenize(text)]).toEqual([id]);
    const part = fc.oneof(fc.constantFrom(...control, ...words, " ", "\n"), fc.string({ maxLength: 6 }));
    fc.assert(
      fc.property(fc.array(part, { maxLength: 12 }), (parts) => {
        const text = parts.join("");
        expect(tokenizer.tokenize(ownText(text))).toEqual(model.tokenize(text));
        expect(tokenizer.tokenizePlain(text)).toEqual(model.tokenize(text, { special: false }));
      }),
    );
  });

  it("11. positions run on over a tool's answer: one pass over all tokens gives the sampler's logprobs", async () => {
    const sequence = model.createSequence();
    const promptIds = tokenizer.encodePrompt(messages.slice(0, 2), tools);
    const sampling = { maxTokens: 12, temperature: 1, seed: 3 };
    const first = await sequence.generate(promptIds, sampling);
    const ended = first.finishReason === "stop";
    const delta = tokenizer.encodeDelta([messages[3]!], ended);
    const second = await sequence.generate(delta, { ...sampling, seed: 4 });
    const tokenIds = [...promptIds, ...first.tokenIds, ...delta, ...second.tokenIds];
    expect(sequence.tokenCount).toBe(tokenIds.length);
    sequence.dispose();
    const [scored] = await model.score([{ tokenIds, from: promptIds.length }]);
    const scoredSecond = scored!.logprobs.slice(tokenIds.length - second.tokenIds.length);
    for (const [i, logprob] of second.logprobs.entries()) expect(scoredSecond[i]).toBeCloseTo(logprob, 4);
    // Without the tokens before the tool's answer the score differs: the agreement above is no coincidence.
    const [reset] = await model.score([{ tokenIds: [...delta, ...second.tokenIds], from: delta.length }]);
    const resetSecond = reset!.logprobs.slice(delta.length);
    expect(Math.max(...second.logprobs.map((logprob, i) => Math.abs(resetSecond[i]! - logprob)))).toBeGreaterThan(1e-3);
  });

  it("2. 9. sampled turns, with deltas between, pass the sanity check, cut turns included", async () => {
    const sequence = model.createSequence();
    const production = new InferenceConversation(tokenizer, tools);
    const said = messages.slice(0, 2);
    let delta = tokenizer.encodePrompt(said, tools);
    expect(production.encodeTurn(said).tokenIds).toEqual(delta);
    const tokenIds: number[] = [];
    const mask: number[] = [];
    for (const [i, answer] of [messages[3]!, messages[5]!, messages[7]!].entries()) {
      const turn = await sequence.generate(delta, { maxTokens: i === 1 ? 3 : 40, temperature: 1, seed: i });
      tokenIds.push(...delta, ...turn.tokenIds);
      mask.push(...Array(delta.length).fill(0), ...Array(turn.tokenIds.length).fill(1));
      said.push({ role: "assistant", content: turn.text });
      expect(["equal", "drift"]).toContain(
        checkConversation(tokenizer, { messages: said, tools, tokenIds, mask }).kind,
      );
      said.push(answer);
      delta = tokenizer.encodeDelta([answer], turn.finishReason === "stop");
      production.addSampled(turn.tokenIds);
      // This template never rewrites history, so rendering as in production evaluates only the delta.
      const next = production.encodeTurn(said);
      expect([next.keep, ...next.tokenIds]).toEqual([tokenIds.length, ...delta]);
    }
    sequence.dispose();
  });
});
