import type { ScoreShard, ShardGradient, ShardScores } from "@cria/core";
import { describe, expect, it } from "vitest";
import { pack, unpack } from "./pack.js";
import {
  type ConversationLimits,
  type ConversationRecord,
  type ConversationResult,
  readConversation,
  readConversationRecord,
  readGradient,
  readScores,
} from "./results.js";

const limits = { info: { vocabSize: 10 }, responseLength: 3 };

const conversation = (): ConversationResult => ({
  rowIndex: 0,
  uid: "test/0",
  sampleIndex: 1,
  dataSource: "test",
  tokenIds: Int32Array.of(1, 2, 3, 9),
  promptLength: 2,
  responseMask: Uint8Array.of(0, 0, 0, 1),
  rolloutLogprobs: Float32Array.of(0, 0, 0, -0.5),
  // In an order that no schema has.
  messages: [{ content: "b", role: "user" }],
  finishReason: "stop",
  numTurns: 1,
  turnScores: [{ value: 1, tokenIndex: 3 }],
  toolRewards: [],
  sampling: { seed: 7, temperature: 1, topP: 1, topK: 0, minP: 0 },
  extraFields: { z: 1, a: [null, "x"] },
  score: null,
  toolScore: 0.5,
  interactionScore: null,
});
const travel = <T>(value: T) => unpack(Buffer.from(pack(value))) as T;
const refused = (details: object) => expect.objectContaining({ code: "cluster/invalid-message", ...details });

describe("results of workers", () => {
  it("of conversations arrive as they were sent, keys in their order", () => {
    const read = readConversation(travel(conversation()), limits);
    expect(read).toEqual(conversation());
    expect(JSON.stringify(read.messages)).toBe('[{"content":"b","role":"user"}]');
    expect(Object.keys(read.extraFields)).toEqual(["z", "a"]);
    // In memory of its own: a view would keep the whole message.
    expect(read.responseMask.buffer.byteLength).toBe(4);
  });

  it.each<[string, Partial<Record<keyof ConversationResult | "evil", unknown>>, string]>([
    ["a token outside the vocabulary", { tokenIds: Int32Array.of(1, 2, 3, 10) }, "tokenIds[3]"],
    ["a negative token", { tokenIds: Int32Array.of(1, -2, 3, 9) }, "the record of a conversation"],
    ["tokens of another kind", { tokenIds: [1, 2, 3, 9] }, "tokenIds"],
    ["a longer prompt than it has tokens", { promptLength: 5 }, "promptLength"],
    ["a longer response", { promptLength: 0, turnScores: [] }, "tokenIds"],
    ["a shorter mask", { responseMask: Uint8Array.of(0, 0, 1) }, "responseMask"],
    ["a mask of 2", { responseMask: Uint8Array.of(0, 0, 2, 1) }, "responseMask[2]"],
    ["a mask on the prompt", { responseMask: Uint8Array.of(0, 1, 0, 1) }, "responseMask[1]"],
    ["more logprobs", { rolloutLogprobs: new Float32Array(5) }, "rolloutLogprobs"],
    ["a logprob of NaN", { rolloutLogprobs: Float32Array.of(0, 0, 0, Number.NaN) }, "rolloutLogprobs[3]"],
    ["a positive logprob", { rolloutLogprobs: Float32Array.of(0, 0, 0, 0.5) }, "rolloutLogprobs[3]"],
    ["a logprob where nothing was sampled", { rolloutLogprobs: Float32Array.of(0, 0, -1, -1) }, "rolloutLogprobs[2]"],
    ["a reward at another token", { turnScores: [{ value: 1, tokenIndex: 2 }] }, "turnScores[0].tokenIndex"],
    ["an endless reward", { toolScore: Number.POSITIVE_INFINITY }, "toolScore"],
    ["a message of nobody", { messages: [{ role: "god", content: "" }] }, "messages[0].role"],
    ["segments with a hole", { segments: [{ start: 0, end: 3, parent: -1, messages: [] }] }, "segments"],
    ["a segment behind itself", { segments: [{ start: 0, end: 4, parent: 0, messages: [] }] }, "segments[0].parent"],
    ["what nobody asked for", { evil: 1 }, "evil"],
  ])("of conversations with %s are refused", (_, change, field) => {
    const value = travel({ ...conversation(), ...change });
    expect(() => readConversation(value, limits)).toThrow(refused({ subject: expect.stringContaining(field) }));
  });

  it("of conversations without images have no vectors, also where this process has the id", () => {
    const images = { find: () => ({}) } as unknown as NonNullable<ConversationLimits["images"]>;
    const value = { ...conversation(), tokenIds: Int32Array.of(1, 10, 3, 9) };
    const subject = "the record of a conversation, tokenIds[1]";
    expect(() => readConversation(travel(value), { ...limits, images })).toThrow(refused({ subject }));
  });

  it("are checked beside conversations too", () => {
    const record: ConversationRecord = {
      metrics: { generate_s: 0.25 },
      timeline: {
        loop: [{ state: "generating", at: 5.5 }],
        request: [{ state: "completed", at: 6 }],
        turns: [{ role: "assistant", start: 2, end: 4, startedAt: 5, endedAt: 6, failures: [null] }],
      },
    };
    expect(readConversationRecord(travel(record), 4)).toEqual(record);
    const field = (name: string) => refused({ subject: expect.stringContaining(name) });
    expect(() => readConversationRecord(travel(record), 3)).toThrow(field("timeline.turns[0].end"));
    expect(() => readConversationRecord({ ...record, metrics: { a: Number.NaN } }, 4)).toThrow(field("metrics"));
  });

  it("of scores fit the job", () => {
    const work = { targets: Int32Array.of(7, 8), squares: false } as ScoreShard;
    const scores: ShardScores = {
      logprobs: Float32Array.of(0, -1),
      entropy: Float32Array.of(0, 1.5),
      squares: null,
    };
    expect(readScores(travel(scores), work)).toEqual(scores);
    const squared = { ...scores, squares: Float32Array.of(1, 0.5) };
    const found = { count: 2, ids: Int32Array.of(1, 2, 3, 4), logprobs: Float32Array.of(-1, -2, -1, -3) };
    const asked = { ...work, likeliest: { count: 2, below: 9 } };
    expect(readScores(travel(squared), { ...work, squares: true })).toEqual(squared);
    const wrong: [unknown, object][] = [
      [[], {}],
      [{ ...scores, logprobs: Float32Array.of(0) }, { expected: expect.stringContaining("2 finite logprobs") }],
      [{ ...scores, logprobs: Float32Array.of(0, Number.NaN) }, { expected: expect.stringContaining("logprobs") }],
      [{ ...scores, logprobs: Float32Array.of(0, 0.5) }, { expected: expect.stringContaining("logprobs") }],
      [{ ...scores, entropy: null }, { received: expect.stringContaining("entropy") }],
      [{ ...scores, entropy: Float32Array.of(0, -1) }, { expected: expect.stringContaining("entropies") }],
      [squared, { expected: expect.stringContaining("squared") }],
      [{ ...scores, likeliest: found }, { expected: expect.stringContaining("likeliest") }],
    ];
    expect(readScores(travel({ ...scores, likeliest: found }), asked)).toEqual({ ...scores, likeliest: found });
    const wrongLists: [object, string][] = [
      [{ ...found, ids: Int32Array.of(1, 2, 3) }, "4 ids"],
      [{ ...found, ids: Int32Array.of(1, 2, 3, 9) }, "4 ids"],
      [{ ...found, logprobs: Float32Array.of(-1, -2, -1, 2) }, "4 logprobs"],
    ];
    for (const [likeliest, expected] of wrongLists)
      expect(() => readScores(travel({ ...scores, likeliest }), asked)).toThrow(
        refused({ subject: "scores", expected: expect.stringContaining(expected) }),
      );
    expect(() => readScores(travel(scores), asked)).toThrow(
      refused({ expected: expect.stringContaining("likeliest") }),
    );
    for (const [value, details] of wrong)
      expect(() => readScores(travel(value), work)).toThrow(refused({ subject: "scores", ...details }));
  });

  it("of gradients are of the model's tensors, and finite", () => {
    const gradient: ShardGradient = { gradient: Float32Array.of(1, -2), loss: 0.5, metrics: { kl: 0 } };
    expect(readGradient(travel(gradient), { trainableParameterCount: 2 })).toEqual(gradient);
    const refusedGradient = (details: object) => refused({ subject: "a gradient", ...details });
    expect(() => readGradient(travel(gradient), { trainableParameterCount: 3 })).toThrow(
      refusedGradient({ expected: expect.stringContaining("3"), received: "2" }),
    );
    // Two of the last have no finite sum.
    for (const value of [Number.POSITIVE_INFINITY, Number.NaN, -3e38]) {
      const infinite = { ...gradient, gradient: Float32Array.of(1, value) };
      expect(() => readGradient(infinite, { trainableParameterCount: 2 })).toThrow(refusedGradient({}));
    }
    expect(() => readGradient({ ...gradient, loss: Number.NaN }, { trainableParameterCount: 2 })).toThrow(
      refusedGradient({ received: expect.stringContaining("loss") }),
    );
  });
});
