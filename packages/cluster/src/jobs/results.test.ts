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

describe("results of workers", () => {
  it("of conversations arrive as they were sent, keys in their order", () => {
    const read = readConversation(travel(conversation()), limits);
    expect(read).toEqual(conversation());
    expect(JSON.stringify(read.messages)).toBe('[{"content":"b","role":"user"}]');
    expect(Object.keys(read.extraFields)).toEqual(["z", "a"]);
    // In memory of its own: a view would keep the whole message.
    expect(read.responseMask.buffer.byteLength).toBe(4);
  });

  it.each<[string, Partial<Record<keyof ConversationResult | "evil", unknown>>, RegExp]>([
    ["a token outside the vocabulary", { tokenIds: Int32Array.of(1, 2, 3, 10) }, /tokenIds\[3\][\s\S]*from 0 to 9/],
    ["a negative token", { tokenIds: Int32Array.of(1, -2, 3, 9) }, /token 1 is -2/],
    ["tokens of another kind", { tokenIds: [1, 2, 3, 9] }, /tokenIds/],
    ["a longer prompt than it has tokens", { promptLength: 5 }, /promptLength[\s\S]*below 5/],
    ["a longer response", { promptLength: 0, turnScores: [] }, /tokenIds[\s\S]*at most 3 tokens after the prompt/],
    ["a shorter mask", { responseMask: Uint8Array.of(0, 0, 1) }, /responseMask[\s\S]*as long as tokenIds \(4\)/],
    ["a mask of 2", { responseMask: Uint8Array.of(0, 0, 2, 1) }, /responseMask\[2\][\s\S]*0 or 1/],
    ["a mask on the prompt", { responseMask: Uint8Array.of(0, 1, 0, 1) }, /responseMask\[1\][\s\S]*0 for the prompt/],
    ["more logprobs", { rolloutLogprobs: new Float32Array(5) }, /rolloutLogprobs[\s\S]*as long as tokenIds \(4\)/],
    [
      "a logprob of NaN",
      { rolloutLogprobs: Float32Array.of(0, 0, 0, Number.NaN) },
      /rolloutLogprobs\[3\][\s\S]*finite/,
    ],
    ["a positive logprob", { rolloutLogprobs: Float32Array.of(0, 0, 0, 0.5) }, /rolloutLogprobs\[3\][\s\S]*at most 0/],
    [
      "a logprob where nothing was sampled",
      { rolloutLogprobs: Float32Array.of(0, 0, -1, -1) },
      /rolloutLogprobs\[2\][\s\S]*0 where the mask is/,
    ],
    [
      "a reward at a token that was not sampled",
      { turnScores: [{ value: 1, tokenIndex: 2 }] },
      /turnScores\[0\].tokenIndex/,
    ],
    ["an endless reward", { toolScore: Number.POSITIVE_INFINITY }, /toolScore/],
    ["a message of nobody", { messages: [{ role: "god", content: "" }] }, /messages\[0\].role/],
    ["segments with a hole", { segments: [{ start: 0, end: 3, parent: -1, messages: [] }] }, /segments of all 4/],
    ["a segment behind itself", { segments: [{ start: 0, end: 4, parent: 0, messages: [] }] }, /segments\[0\].parent/],
    ["what nobody asked for", { evil: 1 }, /evil/],
  ])("of conversations with %s are refused", (_, change, message) => {
    const value = travel({ ...conversation(), ...change });
    expect(() => readConversation(value, limits)).toThrowError(message);
    expect(() => readConversation(value, limits)).toThrowError(
      expect.objectContaining({ code: "cluster/invalid-message" }),
    );
  });

  it("of conversations without images have no vectors, also where this process has the id", () => {
    const images = { find: () => ({}) } as unknown as NonNullable<ConversationLimits["images"]>;
    const value = { ...conversation(), tokenIds: Int32Array.of(1, 10, 3, 9) };
    const refused = { code: "cluster/invalid-message", subject: "the record of a conversation, tokenIds[1]" };
    expect(() => readConversation(travel(value), { ...limits, images })).toThrowError(expect.objectContaining(refused));
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
    expect(() => readConversationRecord(travel(record), 3)).toThrow(/timeline.turns\[0\].end/);
    expect(() => readConversationRecord({ ...record, metrics: { a: Number.NaN } }, 4)).toThrow(/metrics/);
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
    const wrong: [unknown, RegExp][] = [
      [[], /object/],
      [{ ...scores, logprobs: Float32Array.of(0) }, /2 finite logprobs/],
      [{ ...scores, logprobs: Float32Array.of(0, Number.NaN) }, /finite logprobs/],
      [{ ...scores, logprobs: Float32Array.of(0, 0.5) }, /finite logprobs/],
      [{ ...scores, entropy: null }, /entropy/],
      [{ ...scores, entropy: Float32Array.of(0, -1) }, /finite entropies/],
      [squared, /squared probabilities where they were/],
      [{ ...scores, likeliest: found }, /likeliest tokens where they were/],
    ];
    expect(readScores(travel({ ...scores, likeliest: found }), asked)).toEqual({ ...scores, likeliest: found });
    const wrongLists: [object, RegExp][] = [
      [{ ...found, ids: Int32Array.of(1, 2, 3) }, /4 ids/],
      [{ ...found, ids: Int32Array.of(1, 2, 3, 9) }, /4 ids/],
      [{ ...found, logprobs: Float32Array.of(-1, -2, -1, 2) }, /4 logprobs/],
    ];
    for (const [likeliest, message] of wrongLists)
      expect(() => readScores(travel({ ...scores, likeliest }), asked)).toThrow(message);
    expect(() => readScores(travel(scores), asked)).toThrow(/likeliest tokens where they were/);
    for (const [value, message] of wrong) expect(() => readScores(travel(value), work)).toThrow(message);
  });

  it("of gradients are of the model's tensors, and finite", () => {
    const gradient: ShardGradient = { gradient: Float32Array.of(1, -2), loss: 0.5, metrics: { kl: 0 } };
    expect(readGradient(travel(gradient), { trainableParameterCount: 2 })).toEqual(gradient);
    expect(() => readGradient(travel(gradient), { trainableParameterCount: 3 })).toThrow(/3 values/);
    // Two of the last have no finite sum.
    for (const value of [Number.POSITIVE_INFINITY, Number.NaN, -3e38]) {
      const infinite = { ...gradient, gradient: Float32Array.of(1, value) };
      expect(() => readGradient(infinite, { trainableParameterCount: 2 })).toThrow(/finite numbers/);
    }
    expect(() => readGradient({ ...gradient, loss: Number.NaN }, { trainableParameterCount: 2 })).toThrow(/loss/);
  });
});
