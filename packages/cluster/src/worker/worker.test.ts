import { createHash } from "node:crypto";
import { once } from "node:events";
import { cpSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { hashSeed, type ScoreShard, type ShardScores } from "@cria/core";
import { TinyModels } from "@cria/engine/testing";
import type { ConversationWork } from "@cria/rollout";
import { holdConversation } from "@cria/rollout/internal";
import {
  defineTask,
  type GradientWork,
  openTraining,
  type RunEvent,
  type TrainConfig,
  type Training,
} from "@cria/trainer";
import { computePolicyGradient } from "@cria/trainer/internal";
import { writeTinyRun } from "@cria/trainer/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import type { JobBus, JobKind, PublishedPolicy, WorkerInfo } from "../bus/job-bus.js";
import { openRun } from "../coordinator/open-run.js";
import { gradientJob, type JobPayload, type JobValue, metaSchema, rolloutJob, scoreJob } from "../jobs/job-kinds.js";
import { pack } from "../jobs/pack.js";
import { receive, send } from "../jobs/packed.js";
import { readConversation, readConversationRecord, readGradient, readScores } from "../jobs/results.js";
import type { RunDescription } from "../jobs/run-description.js";
import { readWeights, type WeightsEngine, writeWeights } from "../jobs/weights.js";
import { LocalHub } from "../local/local-store.js";
import { openLocalBus } from "../local/open-local-bus.js";
import { fillDisk } from "../testing/fill-disk.js";
import { damage, makeRandom, mutate } from "../testing/nonsense.js";
import { version } from "../version.js";
import { RETRY_MS, type RunningWorker, type StartWorkerOptions, startWorker } from "./start-worker.js";

const models = new TinyModels();
let training: Training;
let config: TrainConfig;
let folder: string;
let engine: WeightsEngine;
let weightsAtFirst: Uint8Array;
let scoring: ScoreShard;
let hub: LocalHub;
let coordinator: JobBus;
let policy: PublishedPolicy | undefined;
const buses: JobBus[] = [];
const workers: RunningWorker[] = [];
const events: RunEvent[] = [];

beforeAll(async () => {
  vi.stubEnv("XDG_CACHE_HOME", join(models.folder, "cache"));
  const tools = { enable: true, tool_config_path: "tools.yaml" };
  ({ config, folder } = await writeTinyRun(models, { rollout: { multi_turn: tools, max_model_len: 128 } }));
  writeFileSync(
    join(folder, "tools.yaml"),
    JSON.stringify({ tools: [{ class_name: "@cria/tools#CalculatorTool", config: {} }] }),
  );
  training = await openTraining(config, folder);
  engine = training.policy.engine as WeightsEngine;
  weightsAtFirst = await readWeights(engine);
  scoring = await planScores();
});
afterAll(async () => {
  await training?.dispose();
  await models.cleanUp();
});

afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.close()));
  await Promise.all(buses.splice(0).map((bus) => bus.close()));
  await writeWeights(engine, weightsAtFirst);
  events.length = 0;
});

function connect(): JobBus {
  const bus = openLocalBus({ hub });
  buses.push(bus);
  return bus;
}

/** Begins a training on a new bus. */
async function begin(change: Partial<RunDescription> = {}): Promise<{ run: string; description: RunDescription }> {
  hub = new LocalHub();
  coordinator = connect();
  policy = undefined;
  return publish(change);
}

async function publish(change: Partial<RunDescription> = {}) {
  const opened = await openRun(coordinator, { ...training, configFolder: folder });
  const description = { ...opened.description, ...change };
  const run = await coordinator.blobs.put(pack(description));
  policy = await coordinator.publishPolicy({ run, version: 0, weights: description.weights }, policy);
  return { run, description };
}

async function startOne(options: StartWorkerOptions = {}): Promise<RunningWorker> {
  const worker = await startWorker(connect(), {
    threads: 1,
    device: "cpu",
    modelDir: models.folder,
    folder,
    report: (event) => void events.push(event),
    ...options,
  });
  workers.push(worker);
  return worker;
}

const working = (worker: RunningWorker) =>
  vi.waitFor(() => expect(worker.status.state).toBe("working"), { timeout: 10_000, interval: 20 });

async function submit<Work>(kind: JobKind<JobPayload, JobValue>, work: Work, change: Partial<JobPayload> = {}) {
  const payload: JobPayload = {
    run: policy!.run,
    weights: policy!.weights,
    version: policy!.version,
    class: null,
    avoid: [],
    losses: 0,
    work: await send(coordinator, work),
    ...change,
  };
  const { value, meta, worker } = await coordinator.submit(kind, payload);
  const { class: bits, record } = metaSchema.parse(meta);
  const result = await receive(coordinator, value.result, z.unknown(), "a result");
  return { result, record: record && (await receive(coordinator, record, z.unknown(), "a record")), bits, worker };
}

const conversation = (seed = 7): ConversationWork => ({
  row: training.trainRows[1]!,
  sample: 2,
  step: 3,
  policyVersion: 3,
  sampling: { temperature: 1, topP: 1, topK: 0, minP: 0, stop: [], maxTokensPerTurn: null, seed: hashSeed(seed) },
});

/** A micro-batch of two sequences. */
async function planScores(): Promise<ScoreShard> {
  let found: ScoreShard | undefined;
  const compute = (shard: ScoreShard, here: () => Promise<ShardScores>) => {
    found = shard;
    return here();
  };
  await training.policy.engine.score([{ tokenIds: [5, 6, 7, 8, 9], from: 2 }, { tokenIds: [1, 2, 3] }], {
    temperature: 0.7,
    compute,
  });
  return found!;
}

async function planGradient({ comparesLikeliest = false } = {}): Promise<GradientWork> {
  const unset = { lossScaleFactor: null, droBeta: null, kl: null, currentCorrection: null };
  const loss = { lossMode: "vanilla", lossAggMode: "token-mean", clipRatioLow: 0.2, clipRatioHigh: 0.2, clipRatioC: 3 };
  const rest = { clipCovRatio: 2e-4, clipCovLb: 1, clipCovUb: 5, klCovRatio: 2e-4, ppoKlCoef: 1, tauPos: 1, tauNeg: 1 };
  const ofTeacher = {
    estimate: "k1",
    topk: 2,
    coefficient: 0.5,
    taskRewards: true,
    policyGradient: true,
    lossMode: "vanilla",
  };
  const teacher = {
    ...{ ...ofTeacher, clipRatioLow: 0.2, clipRatioHigh: 0.2, maxLoss: null, minLogprob: -20 },
    ...(comparesLikeliest ? { estimate: "forward_kl_topk", policyGradient: false } : {}),
  };
  const candidates = {
    count: 2,
    ids: Int32Array.of(0, 0, 1, 2, 3, 4, 5, 6),
    columns: { teacherLogprobs: [0, 0, -0.1, -3, -0.2, -2, -1, -1] },
  };
  let found: GradientWork | undefined;
  const columns = {
    oldLogprobs: [0, -1, -2, -3],
    advantages: [0, 1, -1, 0.5],
    teacherLogprobs: [0, -2, -1, -4],
    tokenKind: [0, 0, 1, 0],
  };
  await training.policy.engine.train(
    [{ tokenIds: [5, 6, 7, 8], lossMask: [0, 1, 1, 1], columns, ...(comparesLikeliest ? { candidates } : {}) }],
    ({ logprobs }) => ({ loss: 0, dLogprobs: new Float32Array(logprobs.length) }),
    null,
    {
      compute: (shard, here) => {
        found = {
          shard,
          loss: {
            ...loss,
            ...rest,
            ...unset,
            teacher,
            entropyCoeff: 0.01,
            observationCoeff: 0.1,
            demonstrationCoeff: 0,
            terms: {},
          },
          totals: { tokens: 2, sequences: 1, terms: { observations: { tokens: 1, sequences: 1 } } },
        };
        return here();
      },
    },
  );
  return found!;
}

const holdHere = (work: ConversationWork) =>
  holdConversation(training.policy.engine, work, { ...training.environment, tokenizer: training.policy.tokenizer });
const bytes = ({ buffer, byteOffset, byteLength }: Float32Array) => Buffer.from(buffer, byteOffset, byteLength);
const seen = async (): Promise<WorkerInfo> => (await coordinator.listWorkers())[0]!;

describe("a worker", () => {
  it("does jobs of all kinds, to the bits of the coordinator", async () => {
    const { description } = await begin();
    const worker = await startOne({ id: "w1" });
    await working(worker);
    expect(worker.status).toMatchObject({
      kinds: ["rollout", "score", "gradient"],
      lacks: [],
      class: description.class,
    });
    expect(await seen()).toMatchObject({
      id: "w1",
      class: description.class,
      slots: { rollout: config.actor_rollout_ref.rollout.max_num_seqs, score: 2, gradient: 2 },
      versions: { cria: version },
      lacks: [],
    });

    const work = conversation();
    const { info } = training.policy.engine;
    const held = await submit(rolloutJob, work);
    expect(held).toMatchObject({ worker: "w1", bits: description.class });
    const { metrics, timeline, ...expected } = await holdHere(work);
    const found = readConversation(held.result, { info, responseLength: training.environment.responseLength });
    expect(found).toEqual(expected);
    expect(found.tokenIds.length).toBeGreaterThan(found.promptLength);
    const record = readConversationRecord(held.record, found.tokenIds.length);
    expect(Object.keys(record.metrics)).toEqual(Object.keys(metrics));
    expect(record.timeline!.turns).toHaveLength(timeline!.turns.length);

    const scores = readScores((await submit(scoreJob, scoring)).result, scoring);
    expect(scores).toEqual(await engine.computeScores!(scoring));

    const asked = { likeliest: { count: 3, below: 100 } };
    const likeliest = readScores((await submit(scoreJob, { ...scoring, ...asked })).result, { ...scoring, ...asked });
    expect(likeliest).toEqual(await engine.computeScores!({ ...scoring, ...asked }));
    expect(likeliest.likeliest!.ids.some((id) => id > 0)).toBe(true);

    for (const gradient of [await planGradient(), await planGradient({ comparesLikeliest: true })]) {
      const computed = readGradient((await submit(gradientJob, gradient)).result, info);
      const own = await computePolicyGradient(training.policy.engine, gradient);
      expect(own.gradient.some((value) => value !== 0)).toBe(true);
      expect(bytes(computed.gradient).equals(bytes(own.gradient))).toBe(true);
      expect({ ...computed, gradient: null }).toEqual({ ...own, gradient: null });
    }

    await worker.drain();
    await worker.done;
    expect(worker.status).toMatchObject({ state: "left", done: 5, failed: 0 });
    expect(await coordinator.listWorkers()).toEqual([]);
  });

  it("computes with the weights that a job names", async () => {
    await begin();
    await working(await startOne());
    const other = await trainABit();
    const newer = await coordinator.blobs.put(other);
    policy = await coordinator.publishPolicy({ run: policy!.run, version: 1, weights: newer }, policy);
    const [first, second] = await Promise.all([
      submit(scoreJob, scoring, { version: 0, weights: sha(weightsAtFirst) }),
      submit(scoreJob, scoring),
    ]);
    await writeWeights(engine, weightsAtFirst);
    expect(first.result).toEqual(await engine.computeScores!(scoring));
    await writeWeights(engine, other);
    expect(second.result).toEqual(await engine.computeScores!(scoring));
    expect(second.result).not.toEqual(first.result);
  });

  it("declines jobs for others, with the reason", async () => {
    const { run } = await begin();
    await working(await startOne({ id: "w1" }));
    const refused = (change: Partial<JobPayload>) =>
      submit(scoreJob, scoring, change).then(
        () => "done",
        (error) => error.received as string,
      );
    expect(await refused({ avoid: ["w1"] })).toBe("w1: is excluded from it");
    expect(await refused({ class: "another" })).toMatch(/^w1: computes bits of class [0-9a-f]{16}$/);
    expect(await refused({ run: sha(Buffer.from("x")) })).toBe("w1: prepares another run");
    expect(await refused({ run })).toBe("done");
  });

  it("with other bits only holds conversations, or does nothing if the config says so", async () => {
    await begin({ class: "0123456789abcdef" });
    const worker = await startOne();
    await working(worker);
    expect(worker.status.kinds).toEqual(["rollout"]);
    expect(worker.status.lacks).toEqual([
      expect.stringMatching(
        /^computes other bits than the coordinator, class [0-9a-f]{16} instead of 0123456789abcdef: it only holds/,
      ),
    ]);
    expect((await submit(rolloutJob, conversation())).bits).toBe(worker.status.class);

    const strict = { ...config, cluster: { ...config.cluster, other_classes: "refuse" as const } };
    const { run } = await publish({ class: "0123456789abcdef", config: strict });
    await vi.waitFor(() => expect(worker.status).toMatchObject({ state: "working", run, kinds: [] }), 10_000);
    expect(worker.status.lacks[0]).toContain("cluster.other_classes refuses it");
  });

  it("without the user code computes gradients and scores, reports it missing, and finds it in a folder of folders", async () => {
    await begin();
    const empty = join(models.folder, "empty");
    mkdirSync(empty);
    const lacking = await startOne({ id: "lacking", folder: empty });
    await working(lacking);
    expect(lacking.status.kinds).toEqual(["score", "gradient"]);
    expect((await seen()).lacks).toEqual([
      expect.stringMatching(/^holds no conversations: no user code [0-9a-f]{12} in .*empty or a folder in it: copy/),
    ]);
    expect(events).toContainEqual({ type: "warning", text: lacking.status.lacks[0] });
    await expect(submit(scoreJob, scoring)).resolves.toMatchObject({ worker: "lacking" });
    await lacking.drain();

    const parent = join(models.folder, "user-code");
    // Another learning rate in the config there is no other user code; another tool is.
    cpSync(folder, join(parent, "mine"), { recursive: true });
    writeFileSync(join(parent, "mine", "config.yaml"), "actor_rollout_ref:\n  actor: { optim: { lr: 1 } }\n");
    const able = await startOne({ folder: parent });
    await working(able);
    expect(able.status.lacks).toEqual([]);
    await able.drain();
    writeFileSync(join(parent, "mine", "tools.yaml"), "tools: []\n");
    const wrong = await startOne({ folder: parent });
    await working(wrong);
    expect(wrong.status.kinds).toEqual(["score", "gradient"]);
    rmSync(parent, { recursive: true });
  });

  it("searches missing user code again when its training is announced again", async () => {
    await begin();
    const place = join(models.folder, "later");
    // A copy in progress: its hash is another one.
    cpSync(folder, place, { recursive: true });
    writeFileSync(join(place, "tools.yaml"), "tools:");
    const worker = await startOne({ folder: place });
    await working(worker);
    expect(worker.status.kinds).toEqual(["score", "gradient"]);

    const announce = async () => {
      policy = await coordinator.publishPolicy({ ...policy!, version: policy!.version + 1 }, policy);
    };
    await announce();
    await expect(submit(scoreJob, scoring)).resolves.toMatchObject({ worker: worker.id });
    expect(worker.status.kinds).toEqual(["score", "gradient"]);

    cpSync(join(folder, "tools.yaml"), join(place, "tools.yaml"));
    await announce();
    await vi.waitFor(() => expect(worker.status.kinds).toEqual(["rollout", "score", "gradient"]), 10_000);
    expect(worker.status.lacks).toEqual([]);
    await expect(submit(rolloutJob, conversation())).resolves.toMatchObject({ worker: worker.id });
    await worker.drain();
    rmSync(place, { recursive: true });
  });

  it("without the model is seen, fetches it from the bus, and refuses another", async () => {
    const { description } = await begin();
    expect(description.model.blobs).toHaveLength(1);
    const store = join(models.folder, "store");
    const worker = await startOne({ modelDir: store });
    await working(worker);
    expect(worker.status.lacks).toEqual([]);
    expect(worker.status.class).toBe(description.class);

    const other = "f".repeat(64);
    await publish({ model: { ...description.model, sha256: other } });
    await vi.waitFor(() => expect(worker.status.lacks[0]).toMatch(/has no model/), 10_000);
    const [lacks] = (await seen()).lacks;
    expect(lacks).toContain(`a file of ${description.model.bytes} bytes with SHA-256 ${other}`);
    expect(lacks).toContain(`not in ${store}; not on the bus: the model`);
    expect(lacks).toContain(`put the file into ${store}`);
    expect(worker.status.kinds).toEqual([]);
    rmSync(store, { recursive: true });
  });

  it("without room for the model says so, and fetches it once there is room", async () => {
    const { description } = await begin();
    const store = join(models.folder, "full");
    // The pause between two attempts.
    const { setTimeout: begins } = globalThis;
    const pauses: (() => void)[] = [];
    const clock = vi.spyOn(globalThis, "setTimeout").mockImplementation(((then: () => void, ms: number) => {
      if (ms !== RETRY_MS) return begins(then, ms);
      pauses.push(then);
      return begins(() => {}, 0);
    }) as typeof setTimeout);
    const makeRoom = await fillDisk();
    try {
      const worker = await startOne({ modelDir: store });
      await working(worker);
      expect(worker.status.lacks).toEqual([expect.stringMatching(/^has no model: .*ENOSPC/)]);
      expect((await seen()).lacks).toEqual(worker.status.lacks);
      expect(worker.status.kinds).toEqual([]);
      expect(readdirSync(store)).toEqual([]);
      await vi.waitFor(() => expect(pauses).toHaveLength(1));
      makeRoom();
      pauses[0]!();
      await vi.waitFor(() => expect(worker.status.class).toBe(description.class), 10_000);
      expect(worker.status.lacks).toEqual([]);
      expect(readdirSync(store)).toEqual([`${description.model.sha256}.gguf`]);
    } finally {
      makeRoom();
      clock.mockRestore();
    }
    rmSync(store, { recursive: true });
  });

  it("of another version takes nothing, and names both", async () => {
    await begin({ cria: "9.9.9" });
    const worker = await startOne();
    await working(worker);
    expect(worker.status.kinds).toEqual([]);
    expect((await seen()).lacks[0]).toMatch(
      new RegExp(
        `expected: Cria ${version}, this worker's version; received: Cria 9.9.9; try: install the same version`,
      ),
    );
  });

  it("gives conversations back that newer weights stop, and holds them again with their own", async () => {
    await begin();
    let begun = 0;
    const task = defineTask({
      name: "waiting",
      rows: ["a"],
      // The first run waits for its stop.
      agent: async ({ signal }) => {
        if (begun++ === 0) await once(signal, "abort");
        return 1;
      },
    });
    const { rollout } = config.actor_rollout_ref;
    const agent = { ...rollout.agent, default_agent_loop: "(agent in memory)" };
    const inMemory = { ...config, actor_rollout_ref: { ...config.actor_rollout_ref, rollout: { ...rollout, agent } } };
    await publish({ userCode: { kind: "task", name: "waiting" }, config: inMemory });
    const worker = await startOne({ tasks: [task] });
    await working(worker);
    expect(worker.status.lacks).toEqual([]);
    const newer = await coordinator.blobs.put(await trainABit());
    const old = submit(rolloutJob, conversation());
    await vi.waitFor(() => expect(begun).toBe(1));
    await submit(scoreJob, scoring, { version: 1, weights: newer });
    await old;
    expect(begun).toBe(2);
    await vi.waitFor(() => expect(worker.status).toMatchObject({ done: 2, failed: 0 }));
  });

  it("loads no code from elsewhere, for any config", async () => {
    const { rollout, actor } = config.actor_rollout_ref;
    const reach = (change: object, userCode: RunDescription["userCode"]) =>
      begin({ config: { ...config, actor_rollout_ref: { ...config.actor_rollout_ref, ...change } }, userCode });
    const outside = join(models.folder, "outside.mjs");
    writeFileSync(outside, "globalThis.wasLoaded = true; export const x = () => {};\n");
    const multi_turn = { ...rollout.multi_turn, tool_config_path: null, format: `${outside}#x` };
    const policy_loss = { ...actor.policy_loss, loss_mode: `${outside}#x` };
    const builtIn = { kind: "package", name: "cria", version, folder: "" } as const;
    for (const [change, userCode] of [
      [{ rollout: { ...rollout, multi_turn } }, builtIn],
      [{ rollout: { ...rollout, multi_turn } }, { kind: "task", name: "mine" }],
      [{ actor: { ...actor, policy_loss } }, { kind: "task", name: "mine" }],
    ] as const) {
      await reach(change, userCode);
      const worker = await startOne({ tasks: [defineTask({ name: "mine", rows: ["a"], reward: () => 1 })] });
      await working(worker);
      expect(worker.status.kinds).not.toContain("rollout");
      expect(worker.status.lacks[0]).toMatch(/outside the folder of the user code|without the user code there is no/);
    }
    expect(globalThis).not.toHaveProperty("wasLoaded");
  });

  it("without a task in memory names it", async () => {
    await begin({ userCode: { kind: "task", name: "other\u001b[2J" } });
    const worker = await startOne();
    await working(worker);
    expect((await seen()).lacks).toEqual([
      'holds no conversations: no task "other [2J" in memory (none): start a worker from the program that defines it',
    ]);
  });
});

const sha = (value: Uint8Array) => createHash("sha256").update(value).digest("hex");

/** Other weights, as after a step. */
async function trainABit(): Promise<Uint8Array> {
  const values = new Float32Array(weightsAtFirst.slice().buffer).map((value, i) => value + 0.01 * Math.sin(i));
  return new Uint8Array(values.buffer);
}

describe("a worker survives", () => {
  it("malformed descriptions of all kinds", async () => {
    const { description } = await begin();
    const worker = await startOne();
    await working(worker);
    const random = makeRandom(11);
    const texts: string[] = [];
    for (let i = 0; i < 40; i++) {
      const bytes = i % 4 === 0 ? damage(pack(description), random) : pack(mutate(description, random));
      const run = await coordinator.blobs.put(bytes);
      policy = await coordinator.publishPolicy({ run, version: 0, weights: description.weights }, policy);
      await vi.waitFor(() => expect(worker.status).toMatchObject({ state: "working", run }), 10_000);
      texts.push(...worker.status.lacks);
    }
    expect(texts.length).toBeGreaterThan(20);
    await publish();
    await vi.waitFor(() => expect(worker.status).toMatchObject({ state: "working", run: policy!.run }), 10_000);
    await expect(submit(scoreJob, scoring)).resolves.toBeDefined();
  });

  it("malformed work of all kinds", async () => {
    await begin();
    const worker = await startOne();
    await working(worker);
    const random = makeRandom(12);
    const gradient = await planGradient({ comparesLikeliest: true });
    const works = [
      [rolloutJob, conversation()],
      [scoreJob, scoring],
      [gradientJob, gradient],
    ] as const;
    const outcomes: string[] = [];
    for (let round = 0; round < 5; round++) {
      const some = Array.from({ length: 12 }, async (_, i) => {
        const [kind, work] = works[i % 3]!;
        return submit(kind, mutate(work, random)).then(
          () => "done",
          (error) => error.code as string,
        );
      });
      outcomes.push(...(await Promise.all(some)));
      // After more failures in a row it would pause.
      for (const [kind, work] of works) await submit<unknown>(kind, work, { avoid: [`round-${round}`] });
    }
    expect(new Set(outcomes)).toEqual(new Set(["done", "cluster/given-up"]));
    const packed = { bytes: Buffer.from(damage(pack(scoring), random)).toString("base64") };
    await expect(submit(scoreJob, null, { work: packed })).rejects.toMatchObject({ code: "cluster/given-up" });
    await expect(submit(scoreJob, scoring, { weights: sha(Buffer.from("none")) })).rejects.toMatchObject({
      received: expect.stringContaining("does not exist"),
    });
    await expect(submit(scoreJob, scoring)).resolves.toBeDefined();
  });
});

it("misspelt options are refused", async () => {
  const options = { slot: 1 } as StartWorkerOptions;
  await expect(startWorker(connect(), options)).rejects.toMatchObject({
    code: "config/unknown-key",
    expected: 'perhaps "slots"',
  });
});
