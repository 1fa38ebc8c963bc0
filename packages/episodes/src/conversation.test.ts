import { describe, expect, it } from "vitest";
import { Conversation, placeRewards } from "./conversation.js";
import type { CallSpan } from "./message-graph.js";

function say(conversation: Conversation, ids: readonly number[], span?: CallSpan) {
  const turn = {
    tokenIds: Int32Array.from(ids),
    logprobs: Float32Array.from(ids, (id) => -id),
    finishReason: "stop" as const,
  };
  return conversation.say(turn, { end: "ended", text: "", calls: [], ...(span ? { span } : {}) });
}

function begin(prompt: readonly number[], budget: number, trainOnToolCalls = true): Conversation {
  const tokenIds = Int32Array.from(prompt);
  const masks = { trainOnConstrained: true, trainOnToolCalls };
  return new Conversation({ messages: [{ role: "user", content: "?" }], tools: [], tokenIds }, budget, masks);
}

const hear = (conversation: Conversation, role: "tool" | "user", tokenIds: readonly number[]) =>
  conversation.hear([{ role, content: "!" }], Int32Array.from(tokenIds));

describe("a conversation", () => {
  it("keeps prompt and response in one row of tokens, indices from the prompt's first", () => {
    const conversation = begin([90, 91, 92], 10, false);
    say(conversation, [1, 2, 3], { count: 1, start: 1, end: 3 });
    hear(conversation, "tool", [50, 51]);
    say(conversation, [4]);
    expect(conversation.remaining).toBe(4);
    expect(conversation.layOut()).toMatchObject({
      tokenIds: Int32Array.of(90, 91, 92, 1, 2, 3, 50, 51, 4),
      promptLength: 3,
      responseMask: Uint8Array.of(0, 0, 0, 1, 0, 0, 0, 0, 1),
      rolloutLogprobs: Float32Array.of(0, 0, 0, -1, 0, 0, 0, 0, -4),
      turns: [
        { role: "assistant", start: 3, end: 6, toolCalls: { count: 1, start: 4, end: 6 } },
        { role: "tool", start: 6, end: 8 },
        { role: "assistant", start: 8, end: 9 },
      ],
    });
  });

  it("keeps the last messages, also without an answer, and a prompt without an answer", () => {
    const conversation = begin([90], 10);
    expect(conversation.layOut()).toMatchObject({
      tokenIds: Int32Array.of(90),
      promptLength: 1,
      turns: [],
      answers: 0,
    });
    say(conversation, [1]);
    hear(conversation, "user", [50]);
    const { tokenIds, messages, turns } = conversation.layOut();
    expect([...tokenIds]).toEqual([90, 1, 50]);
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "user"]);
    expect(turns.map(({ role }) => role)).toEqual(["assistant", "user"]);
  });

  it("places a reward at its answer's last trained token, else at the nearest; nowhere without one", () => {
    const conversation = begin([90], 10, false);
    const first = say(conversation, [1], { count: 1, start: 0, end: 1 });
    hear(conversation, "user", [50]);
    const second = say(conversation, [2, 3]);
    hear(conversation, "tool", [51]);
    const third = say(conversation, [4], { count: 1, start: 0, end: 1 });
    const earned = [first, second, third].map((answer, value) => ({ value, answer }));
    const laidOut = conversation.layOut();
    expect(placeRewards(earned, laidOut).map(({ tokenIndex }) => tokenIndex)).toEqual([3, 4, 4]);
    expect(placeRewards(earned, { ...laidOut, responseMask: new Uint8Array(7) })).toEqual([]);
  });

  it("trains nothing of an answer that a teacher sampled, and gives its rewards to no other", () => {
    const conversation = begin([90], 10);
    const own = say(conversation, [1, 2]);
    hear(conversation, "user", [50]);
    const turn = { tokenIds: Int32Array.of(3, 4), logprobs: Float32Array.of(-3, -4), finishReason: "stop" as const };
    const taught = conversation.say({ ...turn, sampledBy: "teacher" }, { end: "ended", text: "", calls: [] });
    const laidOut = conversation.layOut();
    expect([...laidOut.responseMask]).toEqual([0, 1, 1, 0, 0, 0]);
    expect([...laidOut.rolloutLogprobs]).toEqual([0, -1, -2, 0, 0, 0]);
    expect(laidOut.turns.map(({ sampledBy }) => sampledBy)).toEqual([undefined, undefined, "teacher"]);
    const earned = [own, taught].map((answer) => ({ value: 1, answer }));
    expect(placeRewards(earned, laidOut)).toEqual([{ value: 1, tokenIndex: 2 }]);
  });

  it("that is rewritten to less than its prompt has that as its prompt, and its whole budget", () => {
    const conversation = begin([90, 91, 92, 93], 5);
    say(conversation, [1, 2]);
    expect(conversation.cutFrom(1)).toBe(2);
    hear(conversation, "user", [60]);
    expect(conversation.remaining).toBe(5);
    say(conversation, [3]);
    expect(conversation.layOut()).toMatchObject({
      tokenIds: Int32Array.of(90, 60, 3),
      promptLength: 2,
      responseMask: Uint8Array.of(0, 0, 1),
      turns: [
        { role: "assistant", start: 1, end: 1 },
        { role: "user", start: 1, end: 2 },
        { role: "assistant", start: 2, end: 3 },
      ],
    });
  });

  it("that is rewritten within calls leaves their place, empty, and counts trained tokens alone", () => {
    const conversation = begin([90], 9, false);
    say(conversation, [1, 2, 3, 4], { count: 1, start: 1, end: 3 });
    expect(conversation.cutFrom(3)).toBe(1);
    hear(conversation, "user", [60]);
    expect(conversation.layOut()).toMatchObject({
      tokenIds: Int32Array.of(90, 1, 2, 60),
      responseMask: Uint8Array.of(0, 1, 1, 0),
      turns: [{ start: 1, end: 3, toolCalls: { count: 1, start: 3, end: 3 } }, { role: "user" }],
    });
  });
});
