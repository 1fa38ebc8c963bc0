import type { ChatMessage } from "@cria/core";
import type { BranchCredit, UnjudgedTrajectory } from "@cria/episodes";
import { listCalls } from "@cria/episodes/internal";
import { type AgentContext, agentLoops, type ChatAnswer } from "@cria/rollout";
import { defaultAgentOptions, holdConversation, makeFunctionAgent } from "@cria/rollout/internal";
import { makeFakeRollout, makeRow } from "@cria/rollout/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RecordedTokens } from "./recorded-tokens.js";

/** A call of an agent: behind which of its earlier answers (beyond them: it begins a conversation), and what it says. */
const calls = fc.array(
  fc.record(
    {
      behind: fc.nat(4),
      says: fc.constantFrom("a", "b", "call"),
      before: fc.constantFrom([], ["x"], ["x", "y"]),
      choice: fc.nat(1),
      stop: fc.constantFrom(["7"], ["1"]),
      hasTools: fc.boolean(),
    },
    { requiredKeys: ["behind", "says", "before"] },
  ),
  { minLength: 1, maxLength: 8 },
);
type Asked = NonNullable<typeof calls extends fc.Arbitrary<infer T> ? T : never>;

const look = {
  type: "function" as const,
  function: { name: "look", description: "Looks.", parameters: { type: "object", properties: {} } },
};

async function holdTwice(asked: Asked, options: { production: boolean; credit: BranchCredit }) {
  let runs = 0;
  const agent = async ({ session }: AgentContext) => {
    runs++;
    const said: { messages: ChatMessage[]; answer: ChatAnswer }[] = [];
    for (const { behind, says, before, choice, stop, hasTools } of asked) {
      const parent = said[behind];
      const given = [...before, says].map((content): ChatMessage => ({ role: "user", content }));
      const messages = [...(parent ? [...parent.messages, parent.answer.message] : []), ...given];
      const more = { ...(choice === undefined ? {} : { choice }), ...(stop ? { stop } : {}) };
      said.push({ messages, answer: await session.complete({ messages, ...more, tools: hasTools ? [look] : [] }) });
    }
    return said.length;
  };
  const loops = agentLoops.extend();
  loops.register("mine", makeFunctionAgent(agent as never));
  const rollout = makeFakeRollout({
    reply: ({ text, options: { seed } }) =>
      text.endsWith("call<|im_end|>\n<|im_start|>assistant\n")
        ? `so\n<tool_call>\n{"name": "look", "arguments": {"at": ${seed! % 9}}}\n</tool_call>`
        : `said ${seed! % 99}`,
    defaultAgentLoop: "mine",
    agentLoops: loops,
    multiTurn: { useInferenceChatTemplate: options.production },
    agent: { ...defaultAgentOptions, branchCredit: options.credit },
  });
  const sampling = { seed: 3, temperature: 1, topP: 1, topK: 0, minP: 0, stop: [], maxTokensPerTurn: null };
  const work = { row: makeRow(), sample: 0, step: 1, policyVersion: 1, sampling };
  const held = await holdConversation(rollout.engine, work, rollout.options);
  expect(held.error).toBeUndefined();
  // As a file has it.
  const { turns } = JSON.parse(JSON.stringify(held.timeline!)) as NonNullable<UnjudgedTrajectory["timeline"]>;
  const read = listCalls({ ...held, turns });
  expect(read).not.toBeNull();
  const again = await holdConversation(rollout.engine, work, { ...rollout.options, calls: read! });
  const { steer } = new RecordedTokens(rollout.engine, held);
  const unsampled = await holdConversation(rollout.engine, work, { ...rollout.options, calls: read!, steer });
  expect([again.error, unsampled.error]).toEqual([undefined, undefined]);
  expect(runs).toBe(1);
  return { held, again, unsampled };
}

const describeRecord = ({ timeline, metrics, score, extraFields, scoreError, ...record }: UnjudgedTrajectory) => ({
  ...record,
  turns: timeline!.turns.map(({ startedAt, endedAt, ...turn }) => turn),
});

describe("the recorded calls of an agent", () => {
  it("give the same episode again, with any branches, and its code does not run", async () => {
    await fc.assert(
      fc.asyncProperty(
        calls,
        fc.record({
          production: fc.boolean(),
          credit: fc.constantFrom<BranchCredit>("all_branches", "last_branch", "nodes", "multi_trajectories"),
        }),
        async (asked, options) => {
          const { held, again, unsampled } = await holdTwice(asked, options);
          expect(describeRecord(again)).toEqual(describeRecord(held));
          // Without the policy, too: its words are those of the record.
          expect(describeRecord(unsampled)).toEqual(describeRecord(held));
        },
      ),
      { numRuns: 60 },
    );
  });

  it("are null if a turn lacks its call, or if the messages are not those of the turns", async () => {
    const asked: Asked = [
      { behind: 9, says: "a", before: [] },
      { behind: 0, says: "b", before: ["x"] },
      { behind: 0, says: "c" as "a", before: [] },
    ];
    const { held } = await holdTwice(asked, { production: false, credit: "all_branches" });
    const { turns } = held.timeline!;
    const wrong: Partial<Parameters<typeof listCalls>[0]>[] = [
      { turns: turns.map(({ call: _, ...turn }) => turn) },
      { turns: turns.slice(0, -1) },
      { turns: turns.map((turn) => (turn.call ? { ...turn, call: { ...turn.call, messages: 3 } } : turn)) },
      { turns: [] },
      { segments: undefined },
      { segments: held.segments!.map((segment) => ({ ...segment, messages: segment.messages.slice(1) })) },
    ];
    for (const change of wrong) expect(listCalls({ ...held, turns, ...change })).toBeNull();
    expect(listCalls({ ...held, turns })!.map(({ parent, messages }) => [parent, messages.length])).toEqual(
      held.segments![1]!.messages.length === 3
        ? [
            [-1, 1],
            [0, 2],
            [0, 1],
          ]
        : [
            [-1, 1],
            [0, 1],
            [0, 2],
          ],
    );
  });
});
