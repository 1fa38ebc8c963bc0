import type { ChatMessage, TrajectorySegment } from "@cria/core";
import type { FakeContext } from "@cria/core/testing";
import type { UnjudgedTrajectory } from "@cria/episodes";
import { type AgentContext, agentLoops, type ConversationWork } from "@cria/rollout";
import { holdConversation, makeFunctionAgent } from "@cria/rollout/internal";
import { makeFakeRollout, makeRow } from "@cria/rollout/testing";
import type { CoordinatedRun } from "@cria/trainer";
import { describe, expect, it } from "vitest";
import { pack, unpack } from "../jobs/pack.js";
import { auditConversation, findContradiction } from "./audit-conversation.js";

const user = (content: string): ChatMessage => ({ role: "user", content });
const look = {
  type: "function" as const,
  function: { name: "look", description: "Looks.", parameters: { type: "object", properties: {} } },
};
const reply = ({ options, text }: FakeContext) =>
  text.includes("look around") && !text.includes("a hall")
    ? '<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>'
    : `said ${options.seed}`;

/** A machine with an agent that branches, and calls a tool of its own. */
function open({ isMoody = false, isSilent = false, production = false } = {}) {
  let run = 0;
  const agent = async ({ session }: AgentContext) => {
    run++;
    const ask = async (messages: ChatMessage[], more = {}) => session.complete({ messages, ...more });
    const [plan] = await Promise.all([ask([user("plan")]), ask([user("aside")], { maxTokens: 3, stop: ["9"] })]);
    for (const next of ["x", isMoody ? `y${run}` : "y"]) await ask([user("plan"), plan!.message, user(next)]);
    for (const choice of [0, 1]) await ask([user("plan"), plan!.message, user("x")], { choice });
    for (const role of ["x", "o"]) await ask([user("move")], { role });
    const asked = [user("look around")];
    const seen = await ask(asked, { tools: [look] });
    const call = seen.message.tool_calls![0]!;
    const hall: ChatMessage = { role: "tool", tool_call_id: call.id, content: "a hall" };
    const last = await ask([...asked, seen.message, hall], { tools: [look] });
    if (isSilent) return undefined;
    session.reward(0.25, seen.node);
    return last.message.content.length;
  };
  const loops = agentLoops.extend();
  loops.register("mine", makeFunctionAgent(agent as never));
  const { engine, options } = makeFakeRollout({
    reply,
    reward: null,
    defaultAgentLoop: "mine",
    agentLoops: loops,
    multiTurn: { useInferenceChatTemplate: production },
  });
  const { tokenizer, ...environment } = options;
  return { policy: { engine, tokenizer }, environment } as unknown as Pick<CoordinatedRun, "policy" | "environment">;
}

const sampling = { seed: 7, temperature: 1, topP: 1, topK: 0, minP: 0, stop: [], maxTokensPerTurn: null };
const work: ConversationWork = { row: makeRow(), sample: 0, step: 1, policyVersion: 1, sampling };

/** As it arrives from a worker. */
async function hold({ policy, environment }: ReturnType<typeof open>): Promise<UnjudgedTrajectory> {
  const held = await holdConversation(policy.engine, work, { ...environment, tokenizer: policy.tokenizer });
  expect(held.error).toBeUndefined();
  return unpack(pack(held)) as UnjudgedTrajectory;
}

type Lie = (held: UnjudgedTrajectory) => Partial<UnjudgedTrajectory>;
const bendMessage = (
  held: UnjudgedTrajectory,
  pick: (message: ChatMessage) => boolean,
): Partial<UnjudgedTrajectory> => {
  const bend = (messages: readonly ChatMessage[]) =>
    messages.map((message) => (pick(message) ? { ...message, content: `${message.content}!` } : message));
  const segments = held.segments!.map(
    (segment): TrajectorySegment => ({ ...segment, messages: bend(segment.messages) }),
  );
  return { segments };
};
const bendTurn = (
  { timeline }: UnjudgedTrajectory,
  bend: (turn: NonNullable<UnjudgedTrajectory["timeline"]>["turns"][number]) => object,
): Partial<UnjudgedTrajectory> => ({
  timeline: { ...timeline!, turns: timeline!.turns.map((turn) => ({ ...turn, ...bend(turn) })) },
});

/** Records that contradict themselves, which is noticed without the policy. */
const contradictions: Record<string, Lie> = {
  "an answer that was not sampled": (held) => bendMessage(held, ({ role }) => role === "assistant"),
  "another question": (held) => bendMessage(held, ({ role }) => role === "user"),
  "another answer of a tool": (held) => bendMessage(held, ({ role }) => role === "tool"),
  "another last message": ({ messages }) => ({
    messages: messages.map((message, i) => (i === messages.length - 1 ? { ...message, content: "42" } : message)),
  }),
  "one token less to train on": ({ responseMask, rolloutLogprobs }) => {
    const t = responseMask.indexOf(1);
    return { responseMask: responseMask.with(t, 0), rolloutLogprobs: rolloutLogprobs.with(t, 0) };
  },
  "no segments": () => ({ segments: undefined }),
  "another fork": ({ segments }) => {
    const at = segments!.findLastIndex(({ parent }) => parent >= 0);
    const segment = segments![at]!;
    return { segments: segments!.with(at, { ...segment, parent: segment.parent === 0 ? 1 : 0 }) };
  },
  "other tools": (held) => bendTurn(held, ({ call }) => (call?.tools ? { call: { ...call, tools: [] } } : {})),
  "more turns": ({ numTurns }) => ({ numTurns: numTurns + 1 }),
  "an end that nobody saw": () => ({ finishReason: "tool_calls" }),
  "no calls": (held) => bendTurn(held, () => ({ call: undefined })),
  "no times": () => ({ timeline: undefined }),
};

/** Changes that only the policy, or the agent, can detect. */
const lies: Record<string, Lie> = {
  ...contradictions,
  "one other logprob": ({ responseMask, rolloutLogprobs }) => {
    const t = responseMask.lastIndexOf(1);
    return { rolloutLogprobs: rolloutLogprobs.with(t, rolloutLogprobs[t]! - 1e-3) };
  },
  "draws of another place": (held) =>
    bendTurn(held, ({ call }) => (call ? { call: { ...call, sibling: call.sibling + 1 } } : {})),
  "another role": (held) =>
    bendTurn(held, ({ call }) =>
      call?.request.role === "x" ? { call: { ...call, request: { ...call.request, role: "y" } } } : {},
    ),
  "another score": ({ score }) => ({ score: score! + 1 }),
  "another reward of an answer": ({ turnScores }) => ({
    turnScores: turnScores.map(({ tokenIndex }) => ({ value: 9, tokenIndex })),
  }),
  "data that nobody gave": ({ extraFields }) => ({ extraFields: { ...extraFields, acc: 1 } }),
};

describe("an agent's conversation that a worker held", () => {
  it.each([false, true])("passes where it is honest (rendered as in production: %s)", async (production) => {
    const machine = open({ production });
    const held = await hold(machine);
    expect(held.segments!.length).toBeGreaterThan(4);
    expect(held).toMatchObject({ score: expect.any(Number), turnScores: [{ value: 0.25 }] });
    expect(held.timeline!.turns.flatMap(({ call }) => call?.request.role ?? []).sort()).toEqual(["o", "x"]);
    expect(await findContradiction(machine, work, held)).toBeNull();
    expect(await auditConversation(machine, work, held, true)).toEqual({ is: "same" });
  });

  it("of another class passes by its record where its agent does not judge, and stays open where it does", async () => {
    const silent = open({ isSilent: true });
    expect(await auditConversation(silent, work, await hold(silent), false)).toEqual({ is: "same" });
    const judging = open();
    expect(await auditConversation(judging, work, await hold(judging), false)).toMatchObject({ is: "open" });
  });

  it.each(Object.entries(contradictions))("is noticed with %s, for any share and class", async (_, lie) => {
    const machine = open();
    const held = await hold(machine);
    const told = { ...held, ...lie(held) };
    expect(await findContradiction(machine, work, told)).not.toBeNull();
    expect(await auditConversation(machine, work, told, false)).toMatchObject({ is: "different" });
  });

  it.each(Object.entries(lies))("is found with %s", async (_, lie) => {
    const machine = open();
    const held = await hold(machine);
    const told = { ...held, ...lie(held) };
    expect(await auditConversation(machine, work, told, true)).toMatchObject({ is: "different" });
  });

  it("stays open if its agent asks otherwise each time, and is found if the policy's words differ", async () => {
    const machine = open({ isMoody: true });
    const held = await hold(machine);
    expect(await findContradiction(machine, work, held)).toBeNull();
    expect(await auditConversation(machine, work, held, true)).toMatchObject({ is: "open" });
    const told = { ...held, ...lies["one other logprob"]!(held) };
    expect(await auditConversation(machine, work, told, true)).toMatchObject({ is: "different" });
  });

  it("is not judged by its agent where the task judges: the agent does not run again", async () => {
    const machine = open({ isMoody: true, isSilent: true });
    expect(await auditConversation(machine, work, await hold(machine), true)).toEqual({ is: "same" });
  });
});
