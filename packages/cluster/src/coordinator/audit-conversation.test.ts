import type { ChatMessage } from "@cria/core";
import type { FakeContext } from "@cria/core/testing";
import type { UnjudgedTrajectory } from "@cria/episodes";
import type { ConversationWork } from "@cria/rollout";
import { holdConversation } from "@cria/rollout/internal";
import { makeFakeRollout, makeRow } from "@cria/rollout/testing";
import type { CoordinatedRun } from "@cria/trainer";
import { describe, expect, it } from "vitest";
import { pack, unpack } from "../jobs/pack.js";
import { auditConversation, findContradiction } from "./audit-conversation.js";

const call = (word: string) => `<tool_call>\n{"name": "look_up", "arguments": {"word": "${word}"}}\n</tool_call>`;

/** Looks a word up, reports it, and is asked for more. */
function speak({ text }: FakeContext): string {
  const turns = text.split("<|im_start|>assistant\n").length;
  return turns === 2 ? call("ant") : turns === 3 ? "it is small" : "no more";
}

const curious = {
  name: "test",
  startInteraction: async () => undefined,
  generateResponse: async (_id: string, messages: readonly ChatMessage[]) => ({
    shouldTerminate: messages.length > 5,
    content: "more?",
    score: 1,
    data: { mood: "calm" },
  }),
  calculateScore: async () => 0.5,
  finalizeInteraction: async () => undefined,
};

/** A machine with a tool that answers the same everywhere, or something else each time. */
function open({ isMoody = false, production = false } = {}) {
  let asked = 0;
  const lookUp = {
    name: "look_up",
    schema: { type: "function", function: { name: "look_up", parameters: { type: "object", properties: {} } } },
    create: async () => ({}),
    execute: async (_id: string, { word }: Record<string, unknown>) => {
      asked++;
      const text = `the ${word} is small${isMoody ? ` (${asked})` : ""}`;
      return { response: { text }, reward: isMoody ? asked : 0.25 };
    },
    calcReward: async () => 2,
    release: async () => undefined,
  };
  const tools = [lookUp as never];
  const interactions = [curious as never];
  const multiTurn = { useInferenceChatTemplate: production };
  const { engine, options } = makeFakeRollout({ reply: speak, tools, interactions, multiTurn });
  const { tokenizer, ...environment } = options;
  return { policy: { engine, tokenizer }, environment } as unknown as Pick<CoordinatedRun, "policy" | "environment">;
}

const sampling = { seed: 7, temperature: 1, topP: 1, topK: 0, minP: 0, stop: [], maxTokensPerTurn: null };
const work: ConversationWork = { row: makeRow(), sample: 0, step: 1, policyVersion: 1, sampling };

/** A conversation as it arrives from a worker. */
async function hold({ policy, environment }: ReturnType<typeof open>): Promise<UnjudgedTrajectory> {
  const held = await holdConversation(policy.engine, work, { ...environment, tokenizer: policy.tokenizer });
  return unpack(pack(held)) as UnjudgedTrajectory;
}

const add = (rewards: UnjudgedTrajectory["toolRewards"], more: number) =>
  rewards.map(({ value, tokenIndex }) => ({ value: value + more, tokenIndex }));
const edit = (messages: ChatMessage[], at: number, content: string) =>
  messages.map((message, i) => (i === (at + messages.length) % messages.length ? { ...message, content } : message));

type Lie = (held: UnjudgedTrajectory) => Partial<UnjudgedTrajectory>;
const lies: Record<string, Lie> = {
  "a score of its own": () => ({ score: 1 }),
  "a score by its length": ({ tokenIds }) => ({ score: tokenIds.length / 50 }),
  "another last message": ({ messages }) => ({ messages: edit(messages, -1, "the answer is 42") }),
  "another answer of a tool": ({ messages }) => ({ messages: edit(messages, 2, "the ant is 42") }),
  "another prompt": ({ messages }) => ({ messages: edit(messages, 0, "say hello") }),
  "5 more from its tool": ({ toolRewards }) => ({ toolRewards: add(toolRewards, 5) }),
  "nothing from its tool": () => ({ toolRewards: [] }),
  "5 more from its turns": ({ turnScores }) => ({ turnScores: add(turnScores, 5) }),
  "a reward at another token": ({ toolRewards, turnScores }) => ({
    toolRewards: toolRewards.map(({ value }) => ({ value, tokenIndex: turnScores[0]!.tokenIndex })),
  }),
  "another score of its tools": () => ({ toolScore: 9 }),
  "no score of its interaction": () => ({ interactionScore: null }),
  "a reason why nobody scored it": () => ({ scoreError: "out of order" }),
  "another number of turns": ({ numTurns }) => ({ numTurns: numTurns + 1 }),
  "another end": () => ({ finishReason: "length" }),
  "data that nobody gave": ({ extraFields }) => ({ extraFields: { ...extraFields, acc: 1 } }),
  "a mask without a turn": ({ responseMask, rolloutLogprobs, promptLength }) => ({
    responseMask: responseMask.map((bit, t) => (t < promptLength + 9 ? 0 : bit)),
    rolloutLogprobs: rolloutLogprobs.map((value, t) => (t < promptLength + 9 ? 0 : value)),
  }),
  "another seed": (held) => ({ sampling: { ...held.sampling!, seed: 8 } }),
};

describe("a conversation that a worker held", () => {
  it.each([true, false])("passes where it is honest (own class: %s)", async (isOwnClass) => {
    const machine = open();
    const held = await hold(machine);
    expect(held.toolRewards).toHaveLength(1);
    expect(held).toMatchObject({ toolScore: 2, interactionScore: 0.5, numTurns: expect.any(Number) });
    expect(held.turnScores.length).toBeGreaterThan(0);
    expect(await auditConversation(machine, work, held, isOwnClass)).toEqual({ is: "same" });
    expect(await findContradiction(machine, work, held)).toBeNull();
  });

  it.each(Object.entries(lies))("is found with %s, for any class that it reports", async (_, lie) => {
    const machine = open();
    const held = await hold(machine);
    const told = { ...held, ...lie(held) };
    for (const isOwnClass of [true, false])
      expect(await auditConversation(machine, work, told, isOwnClass)).toMatchObject({ is: "different" });
  });

  it("is found with tokens and logprobs of another policy, if it reports its own class", async () => {
    const machine = open();
    const held = await hold(machine);
    const logprobs = { rolloutLogprobs: held.rolloutLogprobs.map((value) => value * 1.001 - 1e-6 * Math.sign(-value)) };
    expect(await auditConversation(machine, work, { ...held, ...logprobs }, true)).toMatchObject({ is: "different" });
    const tokenIds = held.tokenIds.with(held.promptLength, held.tokenIds[held.promptLength]! + 1);
    for (const isOwnClass of [true, false])
      expect(await auditConversation(machine, work, { ...held, tokenIds }, isOwnClass)).toMatchObject({
        is: "different",
      });
  });

  it("of another class must have turns with a valid end", async () => {
    const machine = open();
    const held = await hold(machine);
    const { timeline } = held;
    const turns = timeline!.turns.map((turn, i) => (i === 0 ? { ...turn, end: turn.end - 1 } : turn));
    const told = { ...held, timeline: { ...timeline!, turns } };
    expect(await auditConversation(machine, work, told, false)).toMatchObject({ is: "different" });
    const none = { ...held, timeline: undefined };
    expect(await auditConversation(machine, work, none, false)).toMatchObject({ is: "different" });
  });

  it("stays open if only a tool's answers differ, and is found if more differs", async () => {
    const machine = open({ isMoody: true });
    const held = await hold(machine);
    for (const isOwnClass of [true, false]) {
      expect(await auditConversation(machine, work, held, isOwnClass)).toMatchObject({ is: "open" });
      const told = { ...held, numTurns: held.numTurns + 1 };
      expect(await auditConversation(machine, work, told, isOwnClass)).toMatchObject({ is: "different" });
    }
  });

  it("is held again for any share, if its messages are not its tokens", async () => {
    const machine = open();
    const held = await hold(machine);
    const contradict = (lie: Partial<UnjudgedTrajectory>) => findContradiction(machine, work, { ...held, ...lie });
    expect(await contradict({ messages: edit(held.messages, -1, "42") })).not.toBeNull();
    expect(await contradict({ messages: edit(held.messages, 0, "say hello") })).not.toBeNull();
    expect(await contradict({ messages: held.messages.slice(0, -1) })).not.toBeNull();
    const turns = held.timeline!.turns.filter(({ role }) => role !== "assistant");
    expect(await contradict({ timeline: { ...held.timeline!, turns } })).not.toBeNull();
    const whole = [{ ...held.timeline!.turns[0]!, end: held.tokenIds.length }];
    expect(await contradict({ timeline: { ...held.timeline!, turns: whole } })).not.toBeNull();
  });

  it("with rewritten turns is compared bit by bit, and only in its own class", async () => {
    const machine = open({ production: true });
    const held = await hold(machine);
    expect(await auditConversation(machine, work, held, true)).toEqual({ is: "same" });
    expect(await auditConversation(machine, work, held, false)).toEqual({ is: "none" });
    expect(await auditConversation(machine, work, { ...held, score: 1 }, true)).toMatchObject({ is: "different" });
  });
});
