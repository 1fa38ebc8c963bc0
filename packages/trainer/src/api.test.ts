import type {
  AdvantageEstimator,
  AggregationName,
  EstimatorName,
  KlName,
  PolicyLoss,
  PolicyLossName,
  PolicyLossOptions,
} from "@cria/algorithms";
import type { ChatMessage } from "@cria/core";
import type {
  BufferedGroup,
  DatasetRow,
  GroupRequest,
  GroupSampler,
  GroupSamplerOptions,
  PickRequest,
} from "@cria/rollout";
import { BaseTool, type CreateOptions, interaction, type ToolFormatName, type ToolStart, tool } from "@cria/tools";
import { describe, expect, expectTypeOf, it } from "vitest";
import { z } from "zod";
import type { Policy, RunningRollouts, TaskDefinition, TaskRow, TrainOptions, TrainStep, Validation } from "./index.js";
import {
  advantages,
  type Batch,
  defineTask,
  type Episode,
  type Groups,
  rollOut,
  type Task,
  type TrainResult,
  type TrainRun,
  train,
} from "./index.js";

// Types are checked by tsc; what these tests do when they run is of no interest.
describe("the types of the API", () => {
  const rows = [{ question: "2+2", truth: 4 }];

  it("a row is of the rows' type wherever a task's functions see it", () => {
    const task = defineTask({
      rows,
      prompt: (row) => {
        expectTypeOf(row).toEqualTypeOf<{ question: string; truth: number }>();
        return row.question;
      },
      truth: (row) => {
        expectTypeOf(row.truth).toEqualTypeOf<number>();
        return row.truth;
      },
      reward: ({ row, answer, messages, toolScore }) => {
        expectTypeOf(row).toEqualTypeOf<{ question: string; truth: number }>();
        expectTypeOf(answer).toEqualTypeOf<string>();
        expectTypeOf(messages).toEqualTypeOf<readonly ChatMessage[]>();
        expectTypeOf(toolScore).toEqualTypeOf<number | null>();
        // @ts-expect-error rows have no such column
        row.answer;
        return answer === String(row.truth);
      },
    });
    expectTypeOf(task).toEqualTypeOf<Task<{ question: string; truth: number }>>();
    // Held-out rows are of the same type.
    task.withRows([{ question: "3+3", truth: 6 }]);
    // @ts-expect-error a row without truth
    expect(task.withRows([{ question: "3+3" }]).definition.rows).toHaveLength(1);
  });

  it("rows of files are DatasetRows", () => {
    const reward = ({ row }: Episode<DatasetRow>) => (row.groundTruth === 4 ? 1 : 0);
    expectTypeOf(defineTask({ rows: "rows.jsonl", reward })).toEqualTypeOf<Task<DatasetRow>>();
    defineTask({
      rows: "rows.jsonl",
      reward: ({ row }) => {
        expectTypeOf(row).toEqualTypeOf<DatasetRow>();
        return 1;
      },
    });
    defineTask({
      rows: ["a.jsonl", "b.jsonl"],
      prompt: (row) => {
        expectTypeOf(row).toEqualTypeOf<DatasetRow>();
        return row.prompt;
      },
    });
  });

  it("a reward may be a number, true or false, a record, or a promise of one; nothing else", () => {
    defineTask({ rows, reward: () => 1 });
    defineTask({ rows, reward: () => true });
    defineTask({ rows, reward: () => ({ score: 1, extra: "x" }) });
    defineTask({ rows, reward: async () => 0.5 });
    defineTask({ rows, reward: "./reward.ts#score" });
    // @ts-expect-error a text is no reward
    defineTask({ rows, reward: () => "good" });
    // @ts-expect-error a number is no function
    expect(() => defineTask({ rows, reward: 1 })).toThrow();
    // @ts-expect-error there is no such field
    expect(() => defineTask({ rows, rewards: () => 1 })).toThrow();
  });

  it("tools and interactions infer their types inside of a task", () => {
    const task = defineTask({
      rows,
      tools: [
        tool({
          name: "add",
          description: "Adds.",
          inputSchema: z.object({ a: z.number(), b: z.number().default(1) }),
          create: ({ row, groundTruth }) => {
            expectTypeOf(row).toEqualTypeOf<{ question: string; truth: number }>();
            expectTypeOf(groundTruth).toEqualTypeOf<unknown>();
            return { calls: 0 };
          },
          execute: ({ a, b }, { state, signal }) => {
            expectTypeOf(a).toEqualTypeOf<number>();
            expectTypeOf(b).toEqualTypeOf<number>();
            expectTypeOf(state).toEqualTypeOf<{ calls: number }>();
            expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
            return a + b;
          },
          reward: ({ calls }) => -calls,
        }),
      ],
      interaction: interaction({
        create: () => ({ asked: 0 }),
        reply: ({ state, answer }) => {
          expectTypeOf(state).toEqualTypeOf<{ asked: number }>();
          return answer;
        },
      }),
    });
    expect(task.definition.tools).toHaveLength(1);
    defineTask({
      rows,
      interaction: ({ answer, groundTruth }) => {
        expectTypeOf(answer).toEqualTypeOf<string>();
        return answer === groundTruth ? { shouldTerminate: true } : "no";
      },
    });
    // @ts-expect-error a number is no reply
    defineTask({ rows, interaction: () => 4 });
  });

  it("a tool says which rows it is for, and a task of other rows refuses it", () => {
    const common = { name: "look", description: "Looks.", inputSchema: z.object({}) };
    const looker = tool({
      ...common,
      create: ({ row }: ToolStart<{ truth: number }>) => ({ truth: row.truth }),
      execute: (_, { state }) => state.truth,
    });
    expect(defineTask({ rows, tools: [looker] }).definition.tools).toHaveLength(1);
    // @ts-expect-error rows without truth
    defineTask({ rows: [{ question: "2+2" }], tools: [looker] });
    // A tool that asks nothing of rows is for all of them.
    const free = tool({ ...common, create: ({ row }) => ({ row }), execute: () => "" });
    defineTask({ rows: [{ question: "2+2" }], tools: [free] });
    class Looker extends BaseTool<{ truth: number }> {
      override async create(instanceId: string, { row }: CreateOptions<{ truth: number }> = {}) {
        expectTypeOf(row).toEqualTypeOf<{ truth: number } | undefined>();
        return { instanceId };
      }
      async execute() {
        return { response: {}, reward: 0, metrics: {} };
      }
    }
    defineTask({ rows, tools: [new Looker(looker.schema)] });
    // @ts-expect-error rows without truth
    defineTask({ rows: [{ question: "2+2" }], tools: [new Looker(looker.schema)] });
  });

  it("the row's type goes through: batches, groups, held-out rows", () => {
    type Row = { question: string; truth: number };
    const task = defineTask({ rows });
    expectTypeOf(task.load).returns.toEqualTypeOf<Promise<TaskRow<Row>[]>>();
    const roll = async (policy: Policy) => {
      for await (const batch of task.batches(2)) {
        expectTypeOf(batch[0]!.extraInfo.row).toEqualTypeOf<Row>();
        const groups = await rollOut(policy, task, batch);
        expectTypeOf(groups.rows[0]!.extraInfo.row).toEqualTypeOf<Row>();
        groups.toBatch(advantages.grpo(groups));
      }
    };
    expectTypeOf(roll).returns.toEqualTypeOf<Promise<void>>();
    const check = () => {
      train({ model: "m.gguf", task, validation: { rows: [{ question: "3+3", truth: 6 }], every: 2 } });
      train({ model: "m.gguf", task, validation: { rows: "held-out.jsonl" } });
      // @ts-expect-error a misspelt column
      train({ model: "m.gguf", task, validation: { rows: [{ quetion: "3+3", truth: 6 }] } });
      train({ model: "m.gguf", rows, agent: ({ row }) => row.truth, validation: { rows } });
      // @ts-expect-error rows of an agent are of one type, too
      train({ model: "m.gguf", rows, agent: ({ row }) => row.truth, validation: { rows: [{ question: "3+3" }] } });
      train({ config: {}, validation: { rows: [{ question: "3+3" }] } });
    };
    expectTypeOf(check).returns.toEqualTypeOf<void>();
  });

  it("a sampler sees the task's rows", () => {
    class Short {
      constructor(readonly rows: readonly { question: string }[]) {}
      pick = ({ count }: PickRequest) => this.rows.slice(0, count).map((_, i) => i);
    }
    class Other {
      constructor(readonly rows: readonly { answer: string }[]) {}
      pick = () => [0];
    }
    const check = () => {
      const task = defineTask({ rows, reward: () => 1 });
      void train({ task, sampler: "difficulty" });
      void train({ task, sampler: Short });
      void train({
        task,
        sampler: ({ rows, step }) => {
          expectTypeOf(rows).toEqualTypeOf<readonly { question: string; truth: number }[]>();
          return [step % rows.length];
        },
      });
      // @ts-expect-error rows without its column
      void train({ task, sampler: Other });
    };
    expectTypeOf(check).returns.toEqualTypeOf<void>();
  });

  it("a sampler of groups is a class, a function or a name", () => {
    class Newest implements GroupSampler {
      constructor(readonly options: GroupSamplerOptions) {}
      pick = ({ groups, count }: GroupRequest) => [...groups.keys()].slice(-count);
    }
    class Other {
      pick = () => ["a"];
    }
    const check = () => {
      const task = defineTask({ rows, reward: () => 1 });
      void train({ task, replay: { share: 0.5, size: 8, maxAge: 2, sampling: "by_variance" } });
      void train({ task, replay: { share: 1, sampling: Newest, samplingKwargs: { a: 1 } } });
      void train({
        task,
        replay: {
          share: 1,
          sampling: ({ groups, kwargs, seed }) => {
            expectTypeOf(groups).toEqualTypeOf<readonly BufferedGroup[]>();
            expectTypeOf(kwargs).toEqualTypeOf<Readonly<Record<string, unknown>>>();
            return [seed % groups.length];
          },
        },
      });
      // @ts-expect-error no name of a sampler
      void train({ task, replay: { share: 1, sampling: "oldest" } });
      // @ts-expect-error picks no positions
      void train({ task, replay: { share: 1, sampling: Other } });
    };
    expectTypeOf(check).returns.toEqualTypeOf<void>();
  });

  it("known names are typed, and others are allowed", () => {
    expectTypeOf<"grpo">().toExtend<EstimatorName>();
    expectTypeOf<Extract<EstimatorName, "grpo" | "grop">>().toEqualTypeOf<"grpo">();
    expectTypeOf<Extract<PolicyLossName, "gspo" | "gsop">>().toEqualTypeOf<"gspo">();
    expectTypeOf<Extract<AggregationName, "token-mean">>().toEqualTypeOf<"token-mean">();
    expectTypeOf<Extract<KlName, "k3+" | "k4">>().toEqualTypeOf<"k3+">();
    expectTypeOf<Extract<ToolFormatName, "hermes">>().toEqualTypeOf<"hermes">();
    for (const name of ["mine", "./mine.ts#mine"]) {
      expectTypeOf(name).toExtend<EstimatorName>();
      expectTypeOf(name).toExtend<ToolFormatName>();
    }
    expectTypeOf<TrainOptions["advantages"]>().toEqualTypeOf<EstimatorName | AdvantageEstimator | undefined>();
    expectTypeOf<TaskDefinition["toolFormat"]>().toEqualTypeOf<ToolFormatName | undefined>();
    expectTypeOf<PolicyLossOptions["lossMode"]>().toEqualTypeOf<PolicyLossName | PolicyLoss>();
  });

  it("a config is typed at every depth", () => {
    const options: TrainOptions = {
      model: "m.gguf",
      task: defineTask({ rows, reward: ({ row }) => row.truth }),
      validation: { rows, every: 20 },
      config: { actor_rollout_ref: { rollout: { multi_turn: { max_parallel_calls: 2 }, stop: "END" } } },
    };
    // @ts-expect-error a misspelt key at the end of a path
    options.config = { actor_rollout_ref: { rollout: { multi_turn: { max_parallel_call: 2 } } } };
    // @ts-expect-error a section that there is not
    options.config = { actor: {} };
    // @ts-expect-error a text is no number
    options.config = { data: { train_batch_size: "4" } };
    // @ts-expect-error one of a few words
    options.config = { data: { truncation: "top" } };
    // @ts-expect-error an option that there is not
    const misspelt: TrainOptions = { batchsize: 4 };
    expect(misspelt).toBeDefined();
  });

  it("the levels accept each other's values", () => {
    expectTypeOf(train).returns.toEqualTypeOf<TrainRun>();
    expectTypeOf<Awaited<TrainRun>>().toEqualTypeOf<TrainResult>();
    expectTypeOf<TrainRun>().toExtend<AsyncIterable<TrainStep>>();
    expectTypeOf<ReturnType<TrainRun["evaluate"]>>().toEqualTypeOf<Promise<Validation | null>>();
    expectTypeOf(rollOut).returns.toEqualTypeOf<RunningRollouts>();
    expectTypeOf<Awaited<RunningRollouts>>().toEqualTypeOf<Groups>();
    expectTypeOf(advantages.grpo).returns.toEqualTypeOf<Parameters<Groups["toBatch"]>[0]>();
    expectTypeOf<ReturnType<Groups["toBatch"]>>().toEqualTypeOf<Batch>();
    expectTypeOf<Parameters<Policy["train"]>[0]>().toEqualTypeOf<Batch>();
    expectTypeOf<Awaited<ReturnType<Policy["generate"]>>>().toEqualTypeOf<string>();
  });
});
