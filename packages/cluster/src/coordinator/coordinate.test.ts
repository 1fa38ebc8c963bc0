import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ClusterError, type TrajectorySegment } from "@cria/core";
import { makeTinyModel } from "@cria/engine/testing";
import { defineTask, type RunEvent, type TrainOptions, train } from "@cria/trainer";
import { context, propagation, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import type { JobBus, JobKindName } from "../bus/job-bus.js";
import { toClusterBus } from "../cluster-bus.js";
import { type JobPayload, type JobValue, payloadSchema } from "../jobs/job-kinds.js";
import { receive, send } from "../jobs/packed.js";
import { LocalHub } from "../local/local-store.js";
import { openLocalBus } from "../local/open-local-bus.js";
import { type StartWorkerOptions, startWorker } from "../worker/start-worker.js";

/** A random policy of a few thousand weights, and prompts with a learnable reward. */
const STEPS = 2;
const prompts = ["a", "bb", "ccc", "dddd"];
/** The model, rows and code, which workers look through, and beside it what the trainings write. */
let folder: string;
let output: string;
let plain: string;
let events: RunEvent[] = [];

const config = (overrides: object = {}, rank = 4, agent = {}, actor = {}) => ({
  actor_rollout_ref: {
    model: { path: "model.gguf", lora_rank: rank },
    actor: { optim: { lr: 1e-2 }, ppo_mini_batch_size: 1, ppo_max_token_len: 128, ...actor },
    rollout: { n: 4, prompt_length: 48, response_length: 8, max_num_seqs: 8, seed: 1, agent },
  },
  data: { train_files: "rows.jsonl", train_batch_size: 2, max_prompt_length: 48, max_response_length: 8 },
  custom_reward_function: { path: "reward.mjs" },
  trainer: { threads: 1, total_training_steps: STEPS, default_local_dir: output },
  cluster: { audit: 0, take_part: false, ...overrides },
});

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "cria-coordinate-"));
  output = mkdtempSync(join(tmpdir(), "cria-coordinated-"));
  await makeTinyModel(join(folder, "model.gguf"), { seed: 5, embeddingScale: 0.25 });
  const rows = prompts.map((content, index) => ({
    data_source: "test",
    prompt: [{ role: "user", content }],
    reward_model: { style: "rule", ground_truth: content },
    extra_info: { index },
  }));
  writeFileSync(join(folder, "rows.jsonl"), rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  writeFileSync(
    join(folder, "reward.mjs"),
    "export const computeScore = (source, text) => [...text].filter((c) => c.charCodeAt(0) < 128).length / Math.max(1, [...text].length);\n",
  );
  writeFileSync(join(folder, "agents.yaml"), "- name: mine\n  agent: ./agent.mjs#agent\n");
  writeFileSync(
    join(folder, "agent.mjs"),
    `export async function agent({ row, session }) {
      const asked = [...row.prompt];
      const { message } = await session.complete({ messages: asked, maxTokens: 4 });
      for (const content of ["x", "y"])
        await session.complete({ messages: [...asked, message, { role: "user", content }], maxTokens: 4 });
    }\n`,
  );
  plain = (await trainIt("plain")).sha;
});
afterAll(() => {
  for (const each of [folder, output]) rmSync(each, { recursive: true, force: true });
});
beforeEach(() => {
  events = [];
});

let runs = 0;
async function trainIt(
  name: string,
  {
    overrides,
    tracing = "off",
    rank = 4,
    agent,
    actor,
    data = "rows.jsonl",
    ...options
  }: Partial<Omit<TrainOptions, "agent">> & {
    overrides?: object;
    tracing?: "off" | "otel";
    rank?: number;
    agent?: object;
    actor?: object;
    /** The file of its rows. */
    data?: string;
  } = {},
) {
  const given = config(overrides, rank, agent, actor);
  const result = await train({
    config: { ...given, data: { ...given.data, train_files: data }, trainer: { ...given.trainer, tracing } },
    configFolder: folder,
    name: `${name}-${runs++}`,
    report: (event) => events.push(event),
    ...options,
  });
  const metrics: Record<string, number>[] = events.flatMap((event) => (event.type === "step" ? [event.metrics] : []));
  const sum = (metric: string) => metrics.reduce((total, line) => total + (line[metric] ?? 0), 0);
  return {
    sha: createHash("sha256")
      .update(readFileSync(result.adapter ?? result.model!))
      .digest("hex"),
    result,
    sum,
  };
}

/** Coordinator and workers in this process, as machines on one bus. */
async function withWorkers<T>(
  workers: (StartWorkerOptions & { change?: (bus: JobBus) => JobBus })[],
  work: (bus: ReturnType<typeof openLocalBus>) => Promise<T>,
): Promise<T> {
  const hub = new LocalHub({ ackWaitMs: 2000, presenceMs: 2000 });
  const coordinator = openLocalBus({ hub });
  const started = workers.map(({ change = (bus) => bus, ...options }) =>
    startWorker(change(openLocalBus({ hub })), { folder, threads: 1, ...options }),
  );
  try {
    return await work(coordinator);
  } finally {
    await Promise.all((await Promise.all(started)).map((worker) => worker.close()));
    await coordinator.close();
  }
}

/** A worker that takes no jobs of a kind. */
const leave =
  (kind: JobKindName) =>
  (bus: JobBus): JobBus => ({
    ...bus,
    work: (options) => bus.work({ ...options, jobs: options.jobs.filter((job) => job.kind.name !== kind) }),
  });

/** A worker that holds conversations when so many can score: the training waits for those that hold conversations. */
const untilScorers = (count: number) => (bus: JobBus) =>
  cheat("rollout", async (held) => {
    await expect.poll(async () => (await bus.listWorkers()).filter(({ slots }) => slots.score)).toHaveLength(count);
    return held;
  })(bus);

/** A worker that changes the results of its jobs, and does those too that it must not do. */
function cheat(kind: JobKindName, change: (result: never) => unknown, told: object = {}) {
  return (bus: JobBus): JobBus => ({
    ...bus,
    work: (options) =>
      bus.work({
        ...options,
        jobs: options.jobs.map((handler) =>
          handler.kind.name !== kind
            ? handler
            : {
                ...handler,
                run: async (payload: JobPayload, context) => {
                  const { value, meta } = (await handler.run(
                    { ...payloadSchema.parse(payload), avoid: [] },
                    context,
                  )) as {
                    value: JobValue;
                    meta: unknown;
                  };
                  const result = await receive(bus, value.result, z.unknown(), "own result");
                  const said = { ...(meta as object), ...told };
                  return { value: { result: await send(bus, await change(result as never)) }, meta: said };
                },
              },
        ),
      }),
  });
}

/** A worker that changes the records of its conversations. */
function cheatRecords(change: (record: never) => object) {
  return (bus: JobBus): JobBus => ({
    ...bus,
    work: (options) =>
      bus.work({
        ...options,
        jobs: options.jobs.map((handler) => ({
          ...handler,
          run: async (...given) => {
            const { value, meta } = await handler.run(...given);
            const said = meta as { record?: JobValue["result"] };
            if (!said.record) return { value, meta };
            const record = await receive(bus, said.record, z.unknown(), "own record");
            return { value, meta: { ...said, record: await send(bus, change(record as never)) } };
          },
        })),
      }),
  });
}

/** A conversation as a worker sends it. */
type Held = {
  tokenIds: Int32Array;
  promptLength: number;
  responseMask: Uint8Array;
  rolloutLogprobs: Float32Array;
  messages: { role: string; content: string }[];
};

const warnings = () => events.flatMap((event) => (event.type === "warning" ? [event.text] : []));

describe("a training with workers", () => {
  it("trains the adapter of one machine, bit for bit, with one worker and with two", async () => {
    await withWorkers([{ id: "one" }], async (bus) => {
      const { sha, sum } = await trainIt("one", { bus, overrides: { wait_for_workers: 1 } });
      expect(sha).toBe(plain);
      expect(sum("cluster/jobs_here")).toBe(0);
      // Each step has 8 conversations, and also scores and gradients.
      expect(sum("cluster/jobs_elsewhere")).toBeGreaterThan(STEPS * 8 + STEPS * 2);
      expect(sum("cluster/policy_bytes")).toBeGreaterThan(0);
      // Only suspicious results are audited.
      expect(sum("cluster/audits")).toBe(0);
      expect(sum("cluster/logprob_diff_max")).toBeLessThan(1e-4);
      const notices = events.flatMap((event) => (event.type === "notice" ? [event.text] : []));
      expect(notices).toContainEqual(expect.stringMatching(/^worker one on .+ helps: rollout, score, gradient$/));
      const documented = readFileSync(join(import.meta.dirname, "../../../../docs/metrics.md"), "utf8");
      const names = events.flatMap((event) => (event.type === "step" ? Object.keys(event.metrics) : []));
      const ours = names.filter((name) => name.startsWith("cluster/"));
      expect(ours.length).toBeGreaterThan(10);
      for (const name of ours) expect(documented).toMatch(new RegExp(`cluster/(\\{[a-z_,]*)?${name.slice(8)}[,}\`]`));
    });
    await withWorkers([{ id: "one" }, { id: "two" }], async (bus) => {
      const { sha, sum } = await trainIt("two", { bus, overrides: { wait_for_workers: 2, take_part: true } });
      expect(sha).toBe(plain);
      expect(sum("cluster/jobs_here")).toBeGreaterThan(0);
      expect(sum("cluster/jobs_elsewhere")).toBeGreaterThan(0);
    });
  });

  it("holds the row's own number of conversations", async () => {
    const rows = prompts.map((content, index) => ({
      data_source: "test",
      prompt: [{ role: "user", content }],
      reward_model: { ground_truth: content },
      __rollout_n__: index === 0 ? null : 2 * index,
    }));
    writeFileSync(join(folder, "ragged.jsonl"), rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
    const ragged = { data: "ragged.jsonl" };
    const alone = await trainIt("ragged", ragged);
    expect(alone.sha).not.toBe(plain);
    events = [];
    await withWorkers([{ id: "one" }], async (bus) => {
      const { sha, sum } = await trainIt("ragged", { bus, overrides: { wait_for_workers: 1 }, ...ragged });
      expect(sha).toBe(alone.sha);
      expect(sum("cluster/jobs_here")).toBe(0);
      expect(sum("rollout/samples/mean") * 2).toBe(4 + 2 + 4 + 6);
    });
  });

  it.each([
    ["the adapter", 4],
    ["all weights", 0],
  ])("trains %s of one machine with the same lag, for any delays of its workers", async (_, rank) => {
    const steps = 5;
    const sampled: string[] = [];
    /** Conversations that end in another order, by the weights that they are sampled by. */
    const slow =
      (factor: number) =>
      (bus: JobBus): JobBus => ({
        ...bus,
        work: (options) =>
          bus.work({
            ...options,
            jobs: options.jobs.map((handler) => ({
              ...handler,
              run: async (payload, context) => {
                const { weights, work } = payloadSchema.parse(payload);
                if (handler.kind.name !== "rollout") return handler.run(payload, context);
                sampled.push(weights);
                await new Promise((done) => setTimeout(done, (factor * JSON.stringify(work).length) % 23));
                return handler.run(payload, context);
              },
            })),
          }),
      });
    for (const lag of [1, 2]) {
      const alone = await trainIt("ahead-alone", { lag, steps, rank });
      expect(alone.sha).not.toBe(plain);
      for (const [take_part, audit] of [
        [false, 0],
        [true, 0],
        [false, 1],
      ] as const) {
        events = [];
        sampled.length = 0;
        const workers = [
          { id: "one", change: slow(1) },
          { id: "two", slots: 3, change: slow(5) },
        ];
        await withWorkers(workers, async (bus) => {
          const overrides = { wait_for_workers: 2, take_part, audit };
          const { sha, sum } = await trainIt("ahead", { bus, lag, steps, overrides, rank });
          expect(sha).toBe(alone.sha);
          if (!take_part) expect(sum("cluster/jobs_here")).toBe(0);
          if (audit === 1) expect(sum("cluster/audits")).toBeGreaterThan(steps * 8);
          expect(sum("cluster/audits_failed") + sum("cluster/abandoned")).toBe(0);
          expect(warnings().filter((text) => text.includes("worker"))).toEqual([]);
        });
        // Each version samples, that of the start for more than one step.
        expect(new Set(sampled).size).toBe(steps - lag);
      }
    }
  });

  it("loses nothing by a worker that dies with conversations of two versions", async () => {
    const steps = 5;
    const alone = await trainIt("died-alone", { lag: 1, steps });
    let held: string | undefined;
    let hasDied = false;
    /**
     * Holds one conversation at a time and ends the others, until it gets one of another version: it ends neither, and is
     * heard of no more. If it ended nothing before, it would soon get nothing more.
     */
    const die = (bus: ReturnType<typeof openLocalBus> | JobBus): JobBus => ({
      ...bus,
      work: (options) =>
        bus.work({
          ...options,
          jobs: options.jobs.map((handler) => ({
            ...handler,
            run: async (payload, context) => {
              const { weights } = payloadSchema.parse(payload);
              if (handler.kind.name !== "rollout" || held === weights) return handler.run(payload, context);
              if (held !== undefined) {
                hasDied = true;
                void bus.close();
              }
              held = weights;
              await new Promise((_, reject) => {
                context.signal.addEventListener("abort", () => {
                  held = undefined;
                  reject(context.signal.reason);
                });
              });
              return handler.run(payload, context);
            },
          })),
        }),
    });
    await withWorkers([{ id: "dies", slots: 2, change: die }, { id: "lives" }], async (bus) => {
      const overrides = { wait_for_workers: 2, silence_s: 0.5 };
      const { sha, sum } = await trainIt("died", { bus, lag: 1, steps, overrides });
      expect(sha).toBe(alone.sha);
      expect(sum("cluster/abandoned")).toBe(0);
      expect(hasDied).toBe(true);
    });
  });

  it("trains all weights to the bits of one machine", async () => {
    const alone = await trainIt("whole-alone", { rank: 0 });
    await withWorkers([{ id: "one" }], async (bus) => {
      const shared = await trainIt("whole-shared", { bus, rank: 0, overrides: { wait_for_workers: 1 } });
      expect(shared.sum("cluster/jobs_here")).toBe(0);
      expect(shared.sha).toBe(alone.sha);
      expect(shared.sha).not.toBe(plain);
    });
  });

  it.each([
    ["taught", {}],
    ["taught-by-likeliest", { estimate: "forward_kl_topk", topk: 6 }],
  ])("learns from a teacher, which the coordinator alone asks, to the bits of one machine: %s", async (name, how) => {
    await makeTinyModel(join(folder, "teacher.gguf"), { seed: 6, layers: 3, embeddingScale: 0.25 });
    const teacher = { model: join(folder, "teacher.gguf"), coefficient: 0.5, ...how };
    const alone = await trainIt(`${name}-alone`, { teacher });
    await withWorkers([{ id: "one" }], async (bus) => {
      const shared = await trainIt(`${name}-shared`, { bus, teacher, overrides: { wait_for_workers: 1 } });
      expect(shared.sum("cluster/jobs_here")).toBe(0);
      expect(shared.sum("distillation/loss")).toBeGreaterThan(0);
      expect(shared.sha).toBe(alone.sha);
      expect(shared.sha).not.toBe(plain);
    });
  });

  it("learns from demonstrations, weighed rows and a term by path, to the bits of one machine", async () => {
    const conversation = [
      { role: "user", content: "?" },
      { role: "assistant", content: "yes" },
    ];
    writeFileSync(join(folder, "shown.jsonl"), `${JSON.stringify({ messages: conversation })}\n`);
    writeFileSync(
      join(folder, "term.mjs"),
      "export const near = { evaluate: ({ logprobs }) => ({ losses: logprobs.map((x) => -x), gradients: logprobs.map(() => -1) }) };\n",
    );
    const shown = { demonstrations: { files: [join(folder, "shown.jsonl")], size: 1 } };
    const terms = {
      demonstration_coeff: 0.5,
      loss_terms: { near: { term: "./term.mjs#near", coefficient: 0.1 } },
      loss_weights: { key: "index", rows: { 1: { policy: 0 }, 2: { policy: 2 } } },
    };
    const alone = await trainIt("mixed-alone", { actor: terms, ...shown });
    await withWorkers([{ id: "one" }], async (bus) => {
      const overrides = { wait_for_workers: 1 };
      const shared = await trainIt("mixed-shared", { bus, actor: terms, ...shown, overrides });
      expect(shared.sum("cluster/jobs_here")).toBe(0);
      expect(shared.sum("actor/demonstration_loss")).toBeGreaterThan(0);
      expect(shared.sum("actor/loss_terms/near")).toBeGreaterThan(0);
      expect(shared.sha).toBe(alone.sha);
      expect(shared.sha).not.toBe(plain);
    });
    // Each part counts.
    for (const left of ["demonstration_coeff", "loss_terms", "loss_weights"] as const) {
      const { [left]: _, ...actor } = terms;
      const less = await trainIt("mixed-less", { actor, ...(left === "demonstration_coeff" ? {} : shown) });
      expect(less.sha).not.toBe(alone.sha);
    }
  });

  it("trains alone if no worker joins", async () => {
    await withWorkers([], async (bus) => {
      const { sha, sum } = await trainIt("nobody", { bus });
      expect(sha).toBe(plain);
      expect(sum("cluster/jobs_elsewhere")).toBe(0);
    });
  });

  it("sends nothing else if the weights are too large for a blob", async () => {
    await withWorkers([], async (bus) => {
      const put: number[] = [];
      const small = {
        ...bus,
        blobs: {
          ...bus.blobs,
          put: async (bytes: Uint8Array) => {
            put.push(bytes.length);
            throw new ClusterError("is too large", { code: "cluster/blob-size", subject: "a blob" });
          },
        },
      };
      const coordinating = toClusterBus(small, "small");
      await expect(trainIt("too-large", { bus: coordinating })).rejects.toMatchObject({ code: "cluster/blob-size" });
      // A model has more bytes than its adapter.
      expect(put).toHaveLength(1);
      expect(put[0]).toBeLessThan(statSync(join(folder, "model.gguf")).size / 2);
    });
  });

  it("audits everything without a warning of Node's", async () => {
    const told: string[] = [];
    const hear = ({ name, message }: Error) => told.push(`${name}: ${message}`);
    process.on("warning", hear);
    await withWorkers([{ id: "one", slots: 32 }], async (bus) => {
      const { sum } = await trainIt("audited", { bus, n: 32, overrides: { audit: 1, wait_for_workers: 1 } });
      expect(sum("cluster/audits")).toBeGreaterThan(2 * 32);
      expect(sum("cluster/audits_failed")).toBe(0);
    });
    process.off("warning", hear);
    expect(told).toEqual([]);
  });

  it("takes a task in memory, which its worker has as well", async () => {
    const task = defineTask({
      rows: prompts.map((question) => ({ question })),
      name: "letters",
      reward: ({ text }) => text.length,
      maxResponseLength: 8,
    });
    const options = { task, model: join(folder, "model.gguf"), lora: { rank: 4 }, steps: 1, batchSize: 2, n: 4 };
    const own = { ...options, config: { trainer: { threads: 1, default_local_dir: output } } };
    const alone = await trainIt("alone", own);
    await withWorkers([{ id: "one", tasks: [task] }], async (bus) => {
      const cluster = { audit: 1, take_part: false, wait_for_workers: 1 };
      const shared = await trainIt("shared", { ...own, config: { ...own.config, cluster }, bus });
      expect(shared.sha).toBe(alone.sha);
      expect(shared.sum("cluster/jobs_here")).toBe(0);
      expect(shared.sum("cluster/audits_failed")).toBe(0);
      expect(shared.sum("cluster/audits")).toBeGreaterThan(8);
    });
  });

  it("makes one trace of an episode, from the coordinator to the turns at the worker", async () => {
    const exporter = new InMemorySpanExporter();
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    propagation.setGlobalPropagator(new W3CTraceContextPropagator());
    trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
    try {
      await withWorkers([{ id: "one" }], (bus) =>
        trainIt("traced", { bus, steps: 1, overrides: { wait_for_workers: 1 }, tracing: "otel" }),
      );
    } finally {
      for (const api of [trace, propagation, context]) api.disable();
    }
    const spans = exporter.getFinishedSpans();
    const find = (id: string | undefined) => spans.find((span) => span.spanContext().spanId === id);
    const turns = spans.filter(({ name }) => name.startsWith("chat"));
    expect(turns).toHaveLength(8);
    for (const turn of turns) {
      const held = find(turn.parentSpanContext?.spanId);
      const root = find(held?.parentSpanContext?.spanId);
      expect([held, root].map((span) => span?.name.split(" ")[0])).toEqual(["invoke_agent", "invoke_agent"]);
      expect(root?.parentSpanContext).toBeUndefined();
      expect(root?.attributes).toHaveProperty("cria.reward");
      expect(new Set([turn, held!, root!].map((span) => span.spanContext().traceId)).size).toBe(1);
    }
  });

  const cheats: [string, JobKindName, (result: never) => unknown][] = [
    [
      "edits one token",
      "rollout",
      (held: { tokenIds: Int32Array; promptLength: number }) => {
        const tokenIds = Int32Array.from(held.tokenIds);
        tokenIds[held.promptLength] = (tokenIds[held.promptLength]! + 1) % 32;
        return { ...held, tokenIds };
      },
    ],
    [
      "has slightly other logprobs, as another quantization has",
      "rollout",
      (held: { rolloutLogprobs: Float32Array }) => ({
        ...held,
        rolloutLogprobs: held.rolloutLogprobs.map((value) => value * 1.001),
      }),
    ],
    [
      "bends a gradient",
      "gradient",
      (found: { gradient: Float32Array }) => ({ ...found, gradient: found.gradient.map((value) => value * 1.001) }),
    ],
    [
      "bends scores",
      "score",
      (found: { logprobs: Float32Array }) => ({ ...found, logprobs: found.logprobs.map((value) => value * 1.001) }),
    ],
  ];
  it.each(cheats)("shuts out a worker that %s, and the training's result stays the same", async (_, kind, change) => {
    // The honest worker leaves these jobs to the other: there may be few of them. Only a worker that held none of the
    // conversations may score them.
    const bent = cheat(kind, change);
    const workers = [
      { id: "honest", change: (bus: JobBus) => leave(kind)(kind === "score" ? untilScorers(1)(bus) : bus) },
      { id: "cheat", change: kind === "score" ? (bus: JobBus) => leave("rollout")(bent(bus)) : bent },
    ];
    // The training waits for workers that hold conversations.
    const waited = kind === "gradient" ? 2 : 1;
    await withWorkers(workers, async (bus) => {
      const { sha, sum } = await trainIt("cheated", { bus, overrides: { audit: 1, wait_for_workers: waited } });
      expect(sha).toBe(plain);
      expect(sum("cluster/audits_failed")).toBeGreaterThan(0);
      expect(warnings().join("\n")).toContain(`worker cheat is shut out: its ${kind} job`);
      expect(warnings().join("\n")).not.toContain("worker honest");
    });
  });

  it("shuts out a worker that bends its logprobs, and their scores alike", async () => {
    const bend = (logprobs: Float32Array) => logprobs.map((value) => (value === 0 ? 0 : value - 2));
    const bendScores = cheat("score", (found: { logprobs: Float32Array }) => ({
      ...found,
      logprobs: bend(found.logprobs),
    }));
    const bendHeld = cheat("rollout", (held: Held) => ({ ...held, rolloutLogprobs: bend(held.rolloutLogprobs) }));
    const bendAll = (bus: JobBus) => untilScorers(2)(bendHeld(bendScores(bus)));
    const workers = [
      { id: "cheat", change: bendAll },
      { id: "honest", change: leave("rollout") },
    ];
    await withWorkers(workers, async (bus) => {
      const { sha } = await trainIt("graded", { bus, overrides: { wait_for_workers: 1 } });
      expect(sha).toBe(plain);
      expect(warnings().join("\n")).toMatch(/worker cheat is shut out: the step computed other logprobs/);
    });
  });

  const lies: [string, (held: Held) => object][] = [
    ["scores itself", () => ({ score: 1 })],
    ["scores itself by its length", ({ tokenIds }) => ({ score: tokenIds.length / 50 })],
    [
      "says what it did not sample",
      ({ messages }) => ({ messages: [messages[0], { ...messages[1]!, content: "aaa" }] }),
    ],
    ["claims rewards of tools", ({ promptLength }) => ({ toolRewards: [{ value: 5, tokenIndex: promptLength }] })],
  ];
  // Also without random audits.
  it.each(lies)("learns nothing from a worker that %s", async (_, lie) => {
    const change = (held: Held) => ({ ...held, ...lie(held) });
    for (const audit of [0, 1]) {
      await withWorkers([{ id: "cheat", change: cheat("rollout", change) }], async (bus) => {
        const { sha } = await trainIt("lied", { bus, overrides: { audit, wait_for_workers: 1 } });
        expect(sha).toBe(plain);
        expect(warnings().join("\n")).toContain("worker cheat");
      });
    }
  });

  const bends: [string, (held: Held & { segments: TrajectorySegment[] }) => object][] = [
    ["edits a token", ({ tokenIds }) => ({ tokenIds: tokenIds.with(-1, (tokenIds.at(-1)! + 1) % 32) })],
    [
      "says what it did not sample in a branch",
      ({ segments }) => ({
        segments: segments.map((segment) => ({
          ...segment,
          messages: segment.messages.map((each) => (each.role === "assistant" ? { ...each, content: "aaa" } : each)),
        })),
      }),
    ],
    [
      "says another question",
      ({ messages }) => ({ messages: [{ ...messages[0]!, content: "aaa" }, ...messages.slice(1)] }),
    ],
  ];
  const agent = { default_agent_loop: "mine", agent_loop_config_path: "agents.yaml" };
  let byAgent: Promise<string> | undefined;
  /** The adapter of a training by the agent on one machine. */
  const trainAlone = () => {
    byAgent ??= trainIt("agent", { agent }).then(({ sha }) => sha);
    return byAgent;
  };

  it.each(bends)("learns nothing from a worker that %s of an agent's conversation", async (_, bend) => {
    const change = (held: Held & { segments: TrajectorySegment[] }) => ({ ...held, ...bend(held) });
    const sha = await trainAlone();
    for (const audit of [0, 1]) {
      events = [];
      await withWorkers([{ id: "cheat", change: cheat("rollout", change) }], async (bus) => {
        const shared = await trainIt("agent", { agent, bus, overrides: { audit, wait_for_workers: 1 } });
        expect(shared.sha).toBe(sha);
        expect(shared.sum("cluster/audits_failed")).toBeGreaterThan(0);
        expect(warnings().join("\n")).toContain("worker cheat is shut out");
      });
    }
  });

  it("finds nothing wrong with an honest worker's conversations of an agent", async () => {
    const sha = await trainAlone();
    events = [];
    await withWorkers([{ id: "honest" }], async (bus) => {
      const shared = await trainIt("agent", { agent, bus, overrides: { audit: 1, wait_for_workers: 1 } });
      expect(shared.sha).toBe(sha);
      expect(shared.sum("cluster/audits")).toBeGreaterThan(0);
      expect(shared.sum("cluster/audits_failed") + shared.sum("cluster/audits_open")).toBe(0);
    });
  });

  const escapes: [string, (held: Held) => object, object?][] = [
    ["fails", (held) => ({ ...held, error: "the tool is down" })],
    ["is cut off", (held) => ({ ...held, finishReason: "aborted" })],
  ];
  it.each(escapes)("names and stops a worker that always %s", async (_, change) => {
    for (const audit of [0, 1]) {
      const workers = [{ id: "cheat", change: cheat("rollout", change) }];
      await withWorkers(workers, async (bus) => {
        const { result } = await trainIt("failing", { bus, overrides: { audit, wait_for_workers: 1 } });
        expect(warnings().join("\n")).toMatch(/worker cheat is shut out: .*\n {2}its last \d+ conversations failed/);
        expect(result.adapter).toBeDefined();
      });
    }
  });

  it("shuts out a worker that reports another class, and tokens and logprobs of another policy", async () => {
    const invent = ({ tokenIds, promptLength, rolloutLogprobs, responseMask, ...held }: Held) => ({
      ...held,
      promptLength,
      responseMask,
      tokenIds: tokenIds.map((token, t) => (responseMask[t] ? (token + 1) % 32 : token)),
      rolloutLogprobs: rolloutLogprobs.map((value) => (value === 0 ? 0 : -0.01)),
    });
    const guess = (held: Held) => ({ ...held, rolloutLogprobs: invent(held).rolloutLogprobs });
    await withWorkers([{ id: "cheat", change: cheat("rollout", guess, { class: "another" }) }], async (bus) => {
      const { sum } = await trainIt("another-class", { bus, overrides: { wait_for_workers: 1 } });
      expect(warnings().join("\n")).toMatch(/worker cheat is shut out: the step computed other logprobs/);
      expect(sum("cluster/logprob_diff_max")).toBeGreaterThan(1);
    });
    await withWorkers([{ id: "cheat", change: cheat("rollout", invent, { class: "another" }) }], async (bus) => {
      const { sha, sum } = await trainIt("another-class", { bus, overrides: { audit: 1, wait_for_workers: 1 } });
      expect(sum("cluster/audits")).toBeGreaterThan(0);
      expect(warnings().join("\n")).toContain("worker cheat is shut out: its rollout job");
      expect(sha).toBe(plain);
    });
    // Fields that do not follow from its tokens and messages.
    const talk = (held: Held & { numTurns: number }) => ({ ...held, numTurns: held.numTurns + 1 });
    await withWorkers([{ id: "cheat", change: cheat("rollout", talk, { class: "another" }) }], async (bus) => {
      const { sha } = await trainIt("another-class", { bus, overrides: { audit: 1, wait_for_workers: 1 } });
      expect(warnings().join("\n")).toContain("numTurns");
      expect(sha).toBe(plain);
    });
  });

  it("ignores metrics of a worker that are unknown here", async () => {
    const names = ["../../x", "reward_failed", "tool/unknown/y", "other_class"];
    const invented = Object.fromEntries(names.map((name) => [name, 7]));
    const invent = (record: { metrics: object }) => ({ ...record, metrics: { ...record.metrics, ...invented } });
    await withWorkers([{ id: "cheat", change: cheatRecords(invent) }], async (bus) => {
      const { sha } = await trainIt("invented", { bus, overrides: { wait_for_workers: 1 } });
      const found = Object.keys(events.findLast((event) => event.type === "step")!.metrics);
      expect(found.filter((name) => /\/x|tool\/unknown|agent_loop\/(other_class|reward_failed)/.test(name))).toEqual(
        [],
      );
      expect(found).toContain("agent_loop/tool_error_rate");
      expect(warnings().join("\n")).toMatch(/metrics of workers .*"\.\.\/\.\.\/x"/);
      expect(sha).toBe(plain);
    });
    let gradients = 0;
    const inventMore = (found: { metrics: object }) => {
      const many = Array.from({ length: 900 }, (_, i) => [`m${i}-${gradients}`, 1]);
      gradients++;
      return { ...found, metrics: { ...found.metrics, "../../z": 1, ...Object.fromEntries(many) } };
    };
    await withWorkers([{ id: "cheat", change: cheat("gradient", inventMore) }], async (bus) => {
      await trainIt("invented", { bus, overrides: { wait_for_workers: 1 } });
      const found = Object.keys(events.findLast((event) => event.type === "step")!.metrics);
      expect(found).not.toContain("actor/../../z");
      expect(gradients).toBeGreaterThan(1);
      expect(found.filter((name) => name.startsWith("actor/m")).length).toBeLessThanOrEqual(1000);
    });
  });

  it.each(["score", "gradient"] as const)("takes no %s of another class of bits", async (kind) => {
    const cheated = cheat(kind, (found) => found, { class: "another" });
    // It may only score what another worker held.
    const workers = [
      { id: "one", change: (bus: JobBus) => leave("rollout")(cheated(bus)) },
      { id: "holder", change: (bus: JobBus) => leave(kind)(kind === "score" ? untilScorers(1)(bus) : bus) },
    ];
    await withWorkers(workers, async (bus) => {
      const { sha } = await trainIt("other-bits", { bus, overrides: { wait_for_workers: 1 } });
      expect(sha).toBe(plain);
      expect(warnings().join("\n")).toContain("another class of bits");
    });
  });

  it("refuses an invalid result, and asks again", async () => {
    let lies = 0;
    const lie = (found: object) => (lies++ < 3 ? { ...found, gradient: "a lot" } : found);
    await withWorkers([{ id: "one", change: cheat("gradient", lie) }], async (bus) => {
      const { sha } = await trainIt("lied-to", { bus, overrides: { wait_for_workers: 1 } });
      expect(sha).toBe(plain);
      expect(warnings().join("\n")).toContain("worker one sent an unusable result");
    });
  });

  it("holds the conversations itself if workers fail at them", async () => {
    const fail = () => {
      throw new Error("the machine burns");
    };
    await withWorkers([{ id: "broken", change: cheat("rollout", fail) }, { id: "good" }], async (bus) => {
      const { sha, sum } = await trainIt("one-broken", { bus, overrides: { wait_for_workers: 2 } });
      expect(sha).toBe(plain);
      expect(sum("cluster/abandoned")).toBe(0);
    });
    await withWorkers([{ id: "broken", change: cheat("rollout", fail) }], async (bus) => {
      const { sha, sum } = await trainIt("all-broken", { bus, overrides: { wait_for_workers: 1 } });
      expect(sha).toBe(plain);
      expect(sum("cluster/abandoned")).toBe(0);
      expect(sum("cluster/jobs_here")).toBe(STEPS * 8);
      expect(warnings().join("\n")).toContain("the machine burns");
    });
  });

  it("gives the job of a stuck worker to another", async () => {
    /** Begins jobs, and ends none. */
    const stuck = (bus: JobBus): JobBus => ({
      ...bus,
      work: (options) =>
        bus.work({
          ...options,
          jobs: options.jobs.map((job) => ({ ...job, run: () => new Promise<never>(() => {}) })),
        }),
    });
    // A job takes milliseconds: this one is long overdue at the next check.
    const overrides = { silence_s: 0.5 };
    await withWorkers([{ id: "stuck", slots: 2, change: stuck }, { id: "good" }], async (bus) => {
      const { sha, sum } = await trainIt("one-stuck", { bus, overrides: { ...overrides, wait_for_workers: 2 } });
      expect(sha).toBe(plain);
      expect(sum("cluster/copies")).toBeGreaterThan(0);
      expect(sum("cluster/abandoned")).toBe(0);
    });
    events = [];
    await withWorkers([{ id: "stuck", slots: 8, change: stuck }], async (bus) => {
      const { sha, sum } = await trainIt("all-stuck", { bus, overrides: { ...overrides, wait_for_workers: 1 } });
      expect(sha).toBe(plain);
      expect(sum("cluster/jobs_elsewhere")).toBe(0);
      expect(warnings().join("\n")).toContain("worker stuck gets no more jobs");
    });
  });

  it.each(["lost", "deadline"] as const)("does a job itself that was given up as %s", async (how) => {
    const lose = (bus: JobBus): JobBus => ({
      ...bus,
      submit: async () => {
        throw new ClusterError("was given up", { code: `cluster/${how}`, subject: "a job" });
      },
    });
    await withWorkers([{ id: "one" }], async (bus) => {
      const overrides = { wait_for_workers: 1 };
      const { sha, sum } = await trainIt("lost", { bus: toClusterBus(lose(bus), "lossy"), overrides });
      expect(sha).toBe(plain);
      expect(sum("cluster/jobs_elsewhere")).toBe(0);
      expect(sum("cluster/abandoned")).toBeGreaterThanOrEqual(STEPS * 8);
      expect(warnings().join("\n")).toContain("are done here");
    });
  });

  it("lets workers of another class hold conversations, weighs them, and takes no gradients of theirs", async () => {
    const other = (bus: JobBus): JobBus => ({
      ...bus,
      work: (options) =>
        bus.work({ ...options, class: "another", jobs: options.jobs.filter((job) => job.kind.name === "rollout") }),
    });
    await withWorkers([{ id: "other", change: other }], async (bus) => {
      const { sum } = await trainIt("others", { bus, overrides: { wait_for_workers: 1 } });
      expect(sum("cluster/jobs_elsewhere")).toBe(STEPS * 8);
      expect(sum("cluster/jobs_here")).toBeGreaterThan(0);
    });
  });

  it.each([0, 2])("with a lag of %i: a standby goes on with it, from the newest checkpoint", async (lag) => {
    const steps = STEPS + lag + 1;
    const alone = await trainIt("not-handed-over", { lag, steps });
    events = [];
    const hub = new LocalHub();
    const first = openLocalBus({ hub });
    const second = openLocalBus({ hub });
    const worker = await startWorker(openLocalBus({ hub }), { folder, threads: 1, id: "one" });
    const options = { ...configOf({ wait_for_workers: 1 }), name: `handed-over-${lag}`, resume: true, lag, steps };
    const lead = train({ ...options, bus: first });
    // The second asks for the lead while the first has it.
    const waiting = [];
    for await (const { step } of lead) {
      if (step === 1) waiting.push(train({ ...options, bus: second }));
      // With a lag the steps under way then are of versions that no longer are the policy.
      if (step === 1 + lag) lead.stop();
    }
    await lead;
    const result = await waiting[0]!;
    const taken = events.filter((event) => event.type === "step").map(({ step }) => step);
    expect(taken).toEqual(Array.from({ length: steps }, (_, i) => i + 1));
    expect(createHash("sha256").update(readFileSync(result.adapter!)).digest("hex")).toBe(alone.sha);
    await worker.close();
    await Promise.all([first.close(), second.close()]);
  });

  function configOf(overrides: object): TrainOptions {
    const given = config(overrides);
    const trainer = { ...given.trainer, save_freq: 1 };
    return { config: { ...given, trainer }, configFolder: folder, report: (event) => events.push(event) };
  }
});
