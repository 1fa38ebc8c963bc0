import { hasFailed, ToolError } from "@cria/core";
import type { FakeContext } from "@cria/core/testing";
import { describe, expect, it } from "vitest";
import { makeFakeRollout, makeRow } from "../testing/fake-rollout.js";
import { holdConversation } from "./hold-conversation.js";
import type { ConversationWork, RolloutOptions } from "./rollout-options.js";
import { runRollouts } from "./run-rollouts.js";

const rows = [0, 1, 2].map((index) => makeRow({ prompt: [{ role: "user", content: `question ${index}` }] }, index));
const tell = {
  reply: ({ options }: FakeContext) => `heard ${options.seed}`,
  reward: (_: string, text: string) => text.length,
};

/** The parts of a trajectory that affect training: neither times, nor the sample that evaluated the prompt. */
const describeAll = (trajectories: Awaited<ReturnType<typeof runRollouts>>) =>
  trajectories.map(
    ({ timeline: _, metrics: { generate_s: __, prefill_tokens: ___, reused_tokens: ____, ...metrics }, ...rest }) => ({
      ...rest,
      metrics,
    }),
  );

describe("conversations held elsewhere", () => {
  it("are those of one process, in the order of rows and samples, and are judged here", async () => {
    const here = makeFakeRollout({ ...tell, n: 3 });
    const worker = makeFakeRollout({ ...tell, reward: () => 100 });
    const asked: ConversationWork[] = [];
    const converse: RolloutOptions["converse"] = async (work, local) => {
      asked.push(work);
      // The last request returns first; every third conversation runs here.
      await new Promise((resolve) => setTimeout(resolve, 9 - asked.length));
      return asked.length % 3 === 0 ? local() : holdConversation(worker.engine, structuredClone(work), worker.options);
    };
    const alone = await here.run(rows);
    const together = await runRollouts(here.engine, rows, { ...here.options, policyVersion: 7, converse });
    expect(asked.every(({ policyVersion }) => policyVersion === 7)).toBe(true);
    expect(asked.map(({ row, sample }) => [row.index, sample])).toEqual(
      rows.flatMap(({ index }) => [0, 1, 2].map((sample) => [index, sample])),
    );
    expect(new Set(asked.map(({ sampling }) => sampling.seed)).size).toBe(9);
    expect(describeAll(together)).toEqual(describeAll(alone));
    expect(together.every(({ reward }) => reward > 0 && reward < 100)).toBe(true);
  });

  it("that fail elsewhere are recorded as failed, and sampled again if the run asks for it", async () => {
    const broken = makeFakeRollout(tell);
    let asked = 0;
    const fail: RolloutOptions["converse"] = async (_, here) => {
      const ended = await here();
      return asked++ === 0 ? { ...ended, finishReason: "aborted", error: "the tool is down" } : ended;
    };
    const [dropped] = await runRollouts(broken.engine, [rows[0]!], {
      ...broken.options,
      converse: fail,
      onFailure: "drop",
    });
    expect(hasFailed(dropped!)).toBe(true);
    expect(dropped!.error).toBe("the tool is down");
    asked = 0;
    const [refilled] = await runRollouts(broken.engine, [rows[0]!], {
      ...broken.options,
      converse: fail,
      onFailure: "refill",
    });
    expect(hasFailed(refilled!)).toBe(false);
    expect(asked).toBe(2);
  });

  it("that are lost count as failed", async () => {
    const states: string[] = [];
    const { engine, options } = makeFakeRollout({ ...tell, n: 2 });
    const lost = new ToolError("was given up", { code: "tool/given-up", subject: "a conversation" });
    const ended = await runRollouts(engine, rows, {
      ...options,
      converse: ({ row, sample }, here) => (row === rows[0] && sample === 1 ? Promise.reject(lost) : here()),
      onState: (state) => states.push(state),
    });
    const failed = ended.filter(({ error }) => error !== undefined);
    expect(failed).toMatchObject([
      { uid: rows[0]!.uid, sampleIndex: 1, error: expect.stringContaining("was given up") },
    ]);
    expect(states.filter((state) => state === "failed")).toHaveLength(1);
    expect(ended).toHaveLength(2 * rows.length);
  });

  it("end the rollouts when they cannot be held at all", async () => {
    const { engine, options } = makeFakeRollout({ ...tell, n: 2 });
    const converse = () => Promise.reject(new Error("no worker is left"));
    await expect(runRollouts(engine, rows, { ...options, converse })).rejects.toThrow("no worker is left");
    expect(engine.counts.created).toBe(engine.counts.disposed);
  });
});
