import type { GenerateResult } from "@cria/core";
import { describe, expect, it } from "vitest";
import { compareBits } from "./checks/decode.js";
import { judgeAlone, judgeRounding, judgeSlopes } from "./checks/gradients.js";
import { judgeMemory } from "./checks/speed.js";
import { compare } from "./checks/stock.js";
import { describeDeath } from "./run-in-child.js";

describe("rows", () => {
  it("bits: one bit of one logprob", () => {
    const result = (last: number) =>
      ({ tokenIds: Int32Array.of(1, 2), logprobs: Float32Array.of(-1, last) }) as unknown as GenerateResult;
    expect(compareBits("bits", [result(-2)], [result(-2)], "two").verdict).toBe("ok");
    expect(compareBits("bits", [result(-2)], [result(-2.0000002)], "two")).toMatchObject({
      verdict: "falls short",
      found: expect.stringMatching(/^conversation 1 differs from its sampled token 2 on/),
    });
  });

  it("stock: a near tie may fall either way, another token may not", () => {
    const ours = [{ tokens: [1, 2, 3], gaps: [3, 0.01, 2] }];
    expect(compare(ours, [[1, 2, 3]], 0.1).found).toBe("3 tokens of 1 prompts are the same");
    expect(compare(ours, [[1, 5, 6]], 0.1)).toMatchObject({
      verdict: "ok",
      found: expect.stringMatching(/0\.010 nats/),
    });
    expect(compare(ours, [[1, 2, 6]], 0.1).verdict).toBe("falls short");
    expect(compare(ours, [[1, 2]], 0.1).verdict).toBe("falls short");
  });

  it("memory, slopes, rounding, batches: beyond their bounds", () => {
    expect(
      [judgeMemory(1.1e9, 1e9, "cpu"), judgeMemory(1.2e9, 1e9, "cpu"), judgeMemory(1.5e8, 1e8, "cpu")].map(
        ({ verdict }) => verdict,
      ),
    ).toEqual(["ok", "falls short", "ok"]);
    const slope = { kind: "attn_q.weight", direction: "random", analytic: 1, numeric: 1 } as const;
    expect(judgeSlopes("g", [{ ...slope, error: 0.009 }]).verdict).toBe("ok");
    expect(
      judgeSlopes("g", [
        { ...slope, error: 0.011 },
        { ...slope, error: 0 },
      ]).verdict,
    ).toBe("falls short");
    expect(judgeSlopes("g", [{ ...slope, analytic: 0, numeric: 0, error: 0 }]).verdict).toBe("falls short");
    expect(judgeSlopes("g", []).verdict).toBe("falls short");
    expect([judgeRounding(0.1, 0.4), judgeRounding(0.6, 0.4)].map(({ verdict }) => verdict)).toEqual([
      "ok",
      "falls short",
    ]);
    const gradients = (x: number) => new Map([["a", Float32Array.of(1, x)]]);
    expect(judgeAlone(gradients(1), gradients(1.001), 1e-2).verdict).toBe("ok");
    expect(judgeAlone(gradients(1), gradients(1.1), 1e-2).verdict).toBe("falls short");
  });

  it("a death: memory is the likely reason for SIGKILL", () => {
    expect(describeDeath("generates", "SIGKILL", "").remedy).toMatch(/memory/);
    expect(describeDeath("generates", "SIGABRT", "a\nGGML_ASSERT(x) failed\nb\n").found).toMatch(
      /SIGABRT: GGML_ASSERT/,
    );
  });
});
