import type { GenerateOptions, GenerateResult, PolicySequence } from "@cria/core";
import { describe, expect, it } from "vitest";
import { type SamplingPolicy, Switching } from "./switching-sequence.js";

const stats = { prefillTokens: 0, reusedTokens: 0, decodeTokens: 1, queueMs: 0, prefillMs: 0, decodeMs: 0 };
const options: GenerateOptions = { maxTokens: 1 };

/** A policy whose answers are its version, and the record of what it was given. */
function makePolicy(policyVersion: number) {
  const seen: { given: number[]; disposed: boolean; wentOnWith: SamplingPolicy["engine"][] }[] = [];
  const open = (given: number[]): PolicySequence => {
    const record: (typeof seen)[number] = { given, disposed: false, wentOnWith: [] };
    seen.push(record);
    return {
      get tokenCount() {
        return given.length;
      },
      async generate(delta): Promise<GenerateResult> {
        given.push(...Array.from(delta), policyVersion);
        const tokenIds = Int32Array.of(policyVersion);
        return { tokenIds, logprobs: Float32Array.of(0), finishReason: "stop", text: "", stats };
      },
      async prefill(delta) {
        given.push(...Array.from(delta));
      },
      fork: () => open([...given]),
      goOnWith: (engine) => record.wentOnWith.push(engine),
      dispose: () => {
        record.disposed = true;
      },
    };
  };
  return { policy: { engine: { createSequence: () => open([]) }, policyVersion } satisfies SamplingPolicy, seen, open };
}

describe("a conversation whose policy may change between turns", () => {
  it("is evaluated again by the version that takes over, which gets all its tokens", async () => {
    const [first, second] = [makePolicy(1), makePolicy(2)];
    let newest = first.policy;
    const asked: number[] = [];
    const switching = new Switching({
      choose: (turn) => {
        asked.push(turn);
        return newest;
      },
    });
    const sequence = switching.begin(first.open([10, 11]), [10, 11], first.policy.engine);
    expect((await sequence.generate([12], options)).policyVersion).toBe(1);
    newest = second.policy;
    const turn = await sequence.generate([13], options);
    expect(turn).toMatchObject({ policyVersion: 2, tokenIds: Int32Array.of(2) });
    expect(second.seen).toEqual([{ given: [10, 11, 12, 1, 13, 2], disposed: false, wentOnWith: [] }]);
    expect(first.seen[0]!.disposed).toBe(true);
    // The same version goes on where it is.
    await sequence.prefill([14]);
    await sequence.generate([15], options);
    expect(second.seen).toHaveLength(1);
    expect(second.seen[0]!.given).toEqual([10, 11, 12, 1, 13, 2, 14, 15, 2]);
    expect(sequence.tokenCount).toBe(9);
    expect(asked).toEqual([1, 2, 3]);
    switching.dispose();
    expect(second.seen[0]!.disposed).toBe(true);
  });

  it("says which turns a teacher sampled, and no version where there is one", async () => {
    const [policy, teacher] = [makePolicy(1), makePolicy(2)];
    const choose = (turn: number): SamplingPolicy =>
      turn === 2 ? { engine: teacher.policy.engine, sampledBy: "teacher" } : { engine: policy.policy.engine };
    const switching = new Switching({ choose });
    const sequence = switching.begin(policy.open([10]), [10], policy.policy.engine);
    const turns = [];
    for (const given of [[11], [12], [13]]) turns.push(await sequence.generate(given, options));
    expect(turns.map(({ sampledBy }) => sampledBy)).toEqual([undefined, "teacher", undefined]);
    expect(turns.map(({ policyVersion }) => policyVersion)).toEqual([undefined, undefined, undefined]);
    expect(teacher.seen[0]!.given).toEqual([10, 11, 1, 12, 2]);
    expect(policy.seen[1]!.given).toEqual([10, 11, 1, 12, 2, 13, 1]);
  });

  it("goes on in a fork, which is taken over too", async () => {
    const [first, second] = [makePolicy(1), makePolicy(2)];
    let newest = first.policy;
    const switching = new Switching({ choose: () => newest });
    const sequence = switching.begin(first.open([10]), [10], first.policy.engine);
    const fork = sequence.fork();
    newest = second.policy;
    await fork.generate([11], options);
    expect(second.seen[0]!.given).toEqual([10, 11, 2]);
    expect(first.seen[0]!.disposed).toBe(false);
  });

  it("goes on with its keys and values where the next version keeps them, but for the first turn and a teacher", async () => {
    const [first, second, teacher] = [makePolicy(1), makePolicy(2), makePolicy(3)];
    const keepsKv = true;
    let newest: SamplingPolicy = { ...second.policy, keepsKv };
    const switching = new Switching({ choose: () => newest });
    const sequence = switching.begin(first.open([10]), [10], first.policy.engine);
    // The prompt was evaluated by the version that began the step.
    await sequence.generate([11], options);
    expect(second.seen).toEqual([{ given: [10, 11, 2], disposed: false, wentOnWith: [] }]);
    newest = { ...first.policy, keepsKv };
    expect((await sequence.generate([12], options)).policyVersion).toBe(1);
    const fork = sequence.fork();
    newest = { ...second.policy, keepsKv };
    await fork.generate([13], options);
    expect(second.seen).toEqual([
      { given: [10, 11, 2, 12, 2], disposed: false, wentOnWith: [first.policy.engine] },
      { given: [10, 11, 2, 12, 2, 13, 2], disposed: false, wentOnWith: [second.policy.engine] },
    ]);
    expect(first.seen).toHaveLength(1);
    newest = { engine: teacher.policy.engine, sampledBy: "teacher" };
    await sequence.generate([14], options);
    expect(teacher.seen).toEqual([{ given: [10, 11, 2, 12, 2, 14, 3], disposed: false, wentOnWith: [] }]);
  });

  it("wraps the sequences that take over, and begins new ones with the policy of the next turn", async () => {
    const [first, second] = [makePolicy(1), makePolicy(2)];
    const wrapped: PolicySequence[] = [];
    const steer = (sequence: PolicySequence) => {
      wrapped.push(sequence);
      return sequence;
    };
    const policies = [first.policy, second.policy];
    const switching = new Switching({ choose: (turn) => policies[Math.min(turn, 2) - 1]!, steer });
    const sequence = switching.createSequence();
    await sequence.generate([10], options);
    await sequence.generate([11], options);
    expect(wrapped).toHaveLength(2);
    expect(first.seen[0]!.given).toEqual([10, 1]);
    expect(second.seen[0]!.given).toEqual([10, 1, 11, 2]);
  });
});
