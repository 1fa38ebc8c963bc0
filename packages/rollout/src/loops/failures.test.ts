import { hasFailed, hashSeed, type Trajectory } from "@cria/core";
import { BaseInteraction, type InteractionReply } from "@cria/tools";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { RewardFunction } from "../rewards/reward-function.js";
import type { RewardManager } from "../rewards/reward-manager.js";
import { makeFakeRollout, makeRow } from "../testing/index.js";
import { registerAgentLoop } from "./agent-loops.js";
import { startRollouts } from "./run-rollouts.js";

/** Fails depending on the number of earlier conversations; an answer scores 0.5. */
class Flaky extends BaseInteraction {
  started = 0;
  constructor(
    private readonly breaks: (start: number) => boolean,
    private readonly scores = true,
  ) {
    super({}, "test");
  }
  override async startInteraction() {
    if (this.breaks(this.started++)) throw new Error("HTTP 503");
  }
  override async generateResponse(): Promise<InteractionReply> {
    return { shouldTerminate: true, content: "", score: 0 };
  }
  override async calculateScore() {
    if (!this.scores) throw new Error("no database");
    return 0.5;
  }
  override async finalizeInteraction() {}
}

const warnings: string[] = [];
afterEach(() => {
  warnings.length = 0;
});
const onWarning = (text: string) => void warnings.push(text);
const describeAll = (trajectories: readonly Trajectory[]) =>
  trajectories.map((t) => (hasFailed(t) ? "failed" : t.reward));

describe("on_failure", () => {
  it("drop keeps a failed conversation as a record without reward, and warns once with row, sample and cause", async () => {
    const flaky = new Flaky((start) => start > 0 && start < 3);
    const { engine, run } = makeFakeRollout({
      reply: () => "hi",
      interactions: [flaky],
      reward: null,
      n: 4,
      onWarning,
    });
    const trajectories = await run();
    expect(describeAll(trajectories).filter((r) => r === "failed")).toHaveLength(2);
    expect(describeAll(trajectories).filter((r) => r === 0.5)).toHaveLength(2);
    const failed = trajectories.find(hasFailed)!;
    expect(failed.rewards).toMatchObject({ score: null, success: null, interactionScore: null });
    expect(failed.metrics).toMatchObject({ failed: 1 });
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toMatch(
      /a conversation failed, and is left out.*\n {2}row 0 \(row 0, .*\), sample \d: .*[\s\S]*503/,
    );
    expect(engine.counts.disposed).toBe(engine.counts.created);
  });

  it("refill samples again with a seed of (row, sample, attempt); attempts that went well keep their draws", async () => {
    const seeds: number[][] = [];
    registerAgentLoop("breaks", (context) => ({
      run: async ({ seed }, row) => {
        seeds.push([row.index, seed]);
        // The second row's first two attempts fail.
        if (row.index === 1 && seeds.filter(([index]) => index === 1).length < 3) throw new Error("HTTP 503");
        const tokenIds = [...context.promptIds, ...context.engine.tokenize("ok")];
        const promptLength = context.promptIds.length;
        return {
          tokenIds,
          promptLength,
          responseMask: tokenIds.map((_, i) => (i < promptLength ? 0 : 1)),
          rolloutLogprobs: tokenIds.map(() => 0),
          turnScores: [],
          toolRewards: [],
          toolScore: null,
          numTurns: 2,
          metrics: {},
          messages: row.prompt,
          finishReason: "stop",
          extraFields: {},
        };
      },
    }));
    const fake = makeFakeRollout({
      reply: () => "",
      defaultAgentLoop: "breaks",
      reward: () => 1,
      onFailure: "refill",
      onWarning,
    });
    const trajectories = await fake.run([makeRow({}, 0), makeRow({}, 1), makeRow({}, 2)]);
    expect(describeAll(trajectories)).toEqual([1, 1, 1]);
    expect(trajectories.map((t) => t.metrics.refilled)).toEqual([undefined, 2, undefined]);
    const draw = (index: number) => [1, 1, makeRow({}, index).uid, 0];
    const sorted = [...seeds].sort((a, b) => a[0]! - b[0]!);
    expect(sorted).toEqual([
      [0, hashSeed(...draw(0))],
      [1, hashSeed(...draw(1))],
      [1, hashSeed(...draw(1), "attempt", 1)],
      [1, hashSeed(...draw(1), "attempt", 2)],
      [2, hashSeed(...draw(2))],
    ]);
    expect(new Set(sorted.map(([, seed]) => seed)).size).toBe(5);
    expect(warnings[0]).toMatch(/is sampled again/);
    expect(fake.engine.counts.disposed).toBe(fake.engine.counts.created);
  });

  it("refill tries three times more, then drops", async () => {
    const flaky = new Flaky(() => true);
    const { engine, run } = makeFakeRollout({
      reply: () => "hi",
      interactions: [flaky],
      reward: null,
      onFailure: "refill",
      n: 2,
    });
    const trajectories = await run();
    expect(describeAll(trajectories)).toEqual(["failed", "failed"]);
    expect(trajectories.map((t) => t.metrics.refilled)).toEqual([3, 3]);
    expect(flaky.started).toBe(8);
    expect(engine.counts.disposed).toBe(engine.counts.created);
  });

  it("refill asks the judge again too, also one that judges all at once", async () => {
    for (const granularity of ["sample", "batch"] as const) {
      const asked: number[] = [];
      const manager: RewardManager = {
        granularity,
        judge: async (requests) => {
          asked.push(requests.length);
          if (asked.length === 1) throw new Error("judge is busy");
          return requests.map(() => ({ score: 1, extra: {} }));
        },
      };
      const delivered: Trajectory[] = [];
      const fake = makeFakeRollout({
        reply: () => "hi",
        reward: manager,
        onFailure: "refill",
        n: 3,
        onTrajectory: (t) => delivered.push(t),
      });
      const trajectories = await fake.run();
      expect(describeAll(trajectories)).toEqual([1, 1, 1]);
      expect(asked).toEqual(granularity === "batch" ? [3, 3] : [1, 1, 1, 1]);
      expect(trajectories.reduce((sum, t) => sum + (t.metrics.refilled ?? 0), 0)).toBe(granularity === "batch" ? 3 : 1);
      expect(delivered).toHaveLength(3);
      expect(fake.engine.counts.disposed).toBe(fake.engine.counts.created);
    }
  });

  it("error ends the run and names row, sample and cause, for every kind of failure", async () => {
    const broken = makeFakeRollout({
      reply: () => "hi",
      interactions: [new Flaky((start) => start === 1)],
      reward: null,
      onFailure: "error",
      n: 2,
    });
    await expect(broken.run()).rejects.toMatchObject({
      code: "rollout/failed",
      subject: expect.stringMatching(/^row 0 .*, sample \d$/),
      received: expect.stringContaining("503"),
    });
    expect(broken.engine.counts.disposed).toBe(broken.engine.counts.created);
    const reward: RewardFunction = () => new Promise(() => undefined);
    const { makeRewardManager } = await import("../rewards/make-reward-manager.js");
    const late = makeRewardManager("naive", { reward, timeoutS: 0.02 });
    const judged = makeFakeRollout({ reply: () => "hi", reward: late, onFailure: "error" });
    await expect(judged.run()).rejects.toMatchObject({
      code: "rollout/failed",
      subject: expect.stringMatching(/^row 0 .*sample 0$/),
      received: expect.stringContaining("0.02 s"),
    });
  });

  it("an abort from outside is neither refilled nor an error", async () => {
    for (const onFailure of ["refill", "error"] as const) {
      const controller = new AbortController();
      class Hangs extends Flaky {
        override generateResponse() {
          setImmediate(() => controller.abort(new Error("enough")));
          return new Promise<InteractionReply>(() => undefined);
        }
      }
      const { engine, run } = makeFakeRollout({
        reply: () => "hi",
        interactions: [new Hangs(() => false)],
        multiTurn: { toolTimeoutS: 60 },
        signal: controller.signal,
        onFailure,
        onWarning,
      });
      const [t] = await run();
      expect(t).toMatchObject({ finishReason: "aborted", metrics: expect.not.objectContaining({ refilled: 1 }) });
      expect(warnings).toEqual([]);
      expect(engine.counts.created).toBe(1);
    }
  });
});

describe("failures caused by the policy are scored as usual", () => {
  it("turns used up, a bad call, an answer that is too long, and a tool that fails", async () => {
    const call = '<tool_call>\n{"name": "none", "arguments": {}}\n</tool_call>';
    const score = async (reply: string, more: object = {}) => {
      const fake = makeFakeRollout({ reply: () => reply, reward: () => -1, ...more });
      return (await fake.run())[0]!;
    };
    const turns = await score(call, { multiTurn: { maxAssistantTurns: 1 } });
    const bad = await score("<tool_call>{not json</tool_call>");
    const long = await score("x".repeat(100), { responseLength: 10 });
    expect([turns, bad, long].map((t) => [hasFailed(t), t.reward])).toEqual(Array(3).fill([false, -1]));
    expect(long.finishReason).toBe("length");
  });
});

describe("judges", () => {
  it("a calculateScore that breaks fails the conversation, if nothing else judges it", async () => {
    const flaky = new Flaky(() => false, false);
    const [alone] = await makeFakeRollout({ reply: () => "hi", interactions: [flaky], reward: null }).run();
    expect(alone!.error).toMatch(/calculateScore of interaction "test"[\s\S]*no database/);
    const seen: unknown[] = [];
    const reward: RewardFunction = (_source, _text, _truth, { interactionScore }) => {
      seen.push(interactionScore);
      return 1;
    };
    const [judged] = await makeFakeRollout({ reply: () => "hi", interactions: [flaky], reward }).run();
    expect(describeAll([judged!])).toEqual([1]);
    expect(seen).toEqual([null]);
    expect(judged!.metrics.interaction_score_exception).toBe(1);
  });

  it("work on after the conversations are over; their errors are thrown at the end", async () => {
    let finish: () => void = () => undefined;
    const slow = () => new Promise<number>((resolve) => (finish = () => resolve(3)));
    const fake = makeFakeRollout({ reply: () => "hi", reward: slow });
    const { conversations, finish: wait } = await startRollouts(fake.engine, [makeRow()], fake.options);
    expect(conversations).toHaveLength(1);
    await vi.waitFor(() => finish());
    finish();
    expect(describeAll(await wait())).toEqual([3]);

    const stopped = makeFakeRollout({ reply: () => "hi", reward: slow, onFailure: "error" });
    const controller = new AbortController();
    const started = await startRollouts(stopped.engine, [makeRow()], { ...stopped.options, signal: controller.signal });
    controller.abort(new Error("enough"));
    await expect(started.finish()).rejects.toThrow("enough");
  });

  it("a row that nothing can score is found before anything is generated", async () => {
    class Mute extends BaseInteraction {
      override async startInteraction() {}
      override async generateResponse(): Promise<InteractionReply> {
        return { shouldTerminate: true, content: "", score: 0 };
      }
      override async finalizeInteraction() {}
    }
    const rows = [makeRow({ data_source: "openai/gsm8k" }, 0), makeRow({ data_source: "sums" }, 1)];
    const { engine, run } = makeFakeRollout({ reply: () => "hi", reward: null });
    await expect(run(rows)).rejects.toMatchObject({
      code: "config/unknown-data-source",
      subject: 'row 1 (row 1): data_source "sums"',
      expected: expect.stringContaining("openai/gsm8k"),
    });
    expect(engine.counts.created).toBe(0);
    const scored = makeFakeRollout({ reply: () => "hi", reward: null, interactions: [new Mute({}, "sums")] });
    expect(describeAll(await scored.run(rows))).toEqual([0, 0]);
  });
});
