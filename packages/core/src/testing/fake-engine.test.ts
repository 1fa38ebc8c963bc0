import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FakeEngine, fakeSpecialTokens } from "./index.js";

fc.configureGlobal({ seed: Number(process.env.CRIA_SEED ?? 1) });

const engine = new FakeEngine({ reply: ({ turn }) => `turn ${turn}`, contextSize: 100 });

describe("FakeEngine", () => {
  it("tokenizes bytes and special tokens exactly, both ways", () => {
    const piece = fc.oneof(fc.string({ unit: "grapheme" }), fc.constantFrom(...fakeSpecialTokens));
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        const text = pieces.join("");
        expect(engine.detokenize(engine.tokenize(text))).toBe(text);
      }),
    );
    expect(engine.tokenize("é<|im_end|>")).toHaveLength(3);
    expect(engine.tokenize("<|im_end|>", { special: false })).toHaveLength(10);
  });

  it("plays its script, turn after turn; forks go on by themselves", async () => {
    const first = engine.createSequence();
    await first.prefill(engine.tokenize("hello "));
    const second = first.fork();
    expect((await first.generate([], { maxTokens: 20 })).text).toBe("turn 0");
    const next = await first.generate(engine.tokenize("?"), { maxTokens: 20 });
    expect(next).toMatchObject({ text: "turn 1", finishReason: "stop" });
    // The end-of-turn token of the previous turn, and the delta.
    expect(next.stats).toMatchObject({ prefillTokens: 2, reusedTokens: 12, decodeTokens: 7 });
    expect(engine.detokenize(first.tokenIds)).toBe("hello turn 0<|im_end|>?turn 1<|im_end|>");
    expect(engine.detokenize(second.tokenIds)).toBe("hello ");
    const [scored] = await engine.score([{ tokenIds: first.tokenIds, from: 6 }]);
    expect([...scored!.logprobs.slice(-7)]).toEqual([...next.logprobs]);
    first.dispose();
    first.dispose();
    second.dispose();
    expect(engine.counts.created).toBe(engine.counts.disposed);
    await expect(first.generate([], { maxTokens: 1 })).rejects.toMatchObject({
      code: "engine/disposed",
      subject: "sequence",
    });
  });

  it("honours limits, stops and aborts as the real one does", async () => {
    const sequence = engine.createSequence();
    expect(await sequence.generate([], { maxTokens: 3 })).toMatchObject({ text: "tur", finishReason: "length" });
    expect(await sequence.generate([], { maxTokens: 9, stopStrings: ["rn"] })).toMatchObject({
      text: "tu",
      tokenIds: engine.tokenize("turn"),
      finishReason: "stop",
    });
    expect(await sequence.generate([], { maxTokens: 9, signal: AbortSignal.abort() })).toMatchObject({
      text: "",
      finishReason: "aborted",
    });
    await expect(sequence.generate([], { maxTokens: 100 })).rejects.toMatchObject({
      code: "engine/context-exceeded",
      expected: "at most 100 tokens",
      received: "107 tokens",
    });
    await expect(sequence.prefill([9999])).rejects.toMatchObject({ code: "engine/bad-token", received: "9999" });
    sequence.dispose();
  });

  it("gives its script the grammar, and removes nothing by it", async () => {
    const seen: (string | undefined)[] = [];
    const scripted = new FakeEngine({
      reply: ({ options }) => {
        seen.push(options.grammar);
        return "yes";
      },
    });
    const sequence = scripted.createSequence();
    const held = await sequence.generate([1], { maxTokens: 9, grammar: 'root ::= "yes"' });
    expect([...held.constrained!]).toEqual([0, 0, 0, 0]);
    expect(await sequence.generate([], { maxTokens: 9 })).not.toHaveProperty("constrained");
    expect(seen).toEqual(['root ::= "yes"', undefined]);
    sequence.dispose();
  });

  it("train gives the loss the masked-in tokens of each sequence", async () => {
    const result = await engine.train(
      [
        { tokenIds: [1, 2, 3], lossMask: [0, 1, 1], columns: { a: [0, 5, 6] } },
        { tokenIds: [4, 5], lossMask: [0, 1], columns: { a: [0, 7] } },
      ],
      ({ offsets, columns, logprobs, totals }) => {
        expect([...offsets]).toEqual([0, 2, 3]);
        expect([...columns.a!]).toEqual([5, 6, 7]);
        expect(totals).toEqual({ tokens: 3, sequences: 2 });
        return { loss: 2, dLogprobs: Float32Array.from(logprobs, () => 2) };
      },
      { learningRate: 1 },
    );
    expect(result).toMatchObject({ loss: 2, lossTokens: 3, evaluatedTokens: 5 });
    expect(result.gradNorm).toBeCloseTo(Math.sqrt(12), 6);
  });
});
