import { readFileSync } from "node:fs";
import { join } from "node:path";
import { losses } from "@cria/algorithms";
import type { ChatMessage } from "@cria/core";
import { loadModel } from "@cria/engine";
import { TinyModels } from "@cria/engine/testing";
import { type DumpLine, readDump } from "@cria/records";
import type { AgentContext } from "@cria/rollout";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CheckpointStore } from "../checkpoints/checkpoint-store.js";
import type { TrainingBus } from "../cluster/training-bus.js";
import { loadPolicy } from "../policy/load-policy.js";
import { openReplay } from "../replay/open-replay.js";
import { advantages } from "../step/advantages.js";
import { rollOut } from "../step/roll-out.js";
import { defineTask } from "../task/task.js";
import { hashSync } from "../testing/hash-sync.js";
import { makeAgentTask } from "./agent-task.js";
import { makeConfig } from "./make-config.js";
import { train } from "./train.js";
import type { TrainOptions } from "./train-options.js";
import { openTraining } from "./training.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

let model: string;
beforeAll(async () => {
  model = await models.write({ seed: 5, embeddingScale: 0.25 });
});

type Row = { question: string };
const rows: Row[] = ["a", "bb", "ccc"].map((question) => ({ question }));
const user = (content: string): ChatMessage => ({ role: "user", content });

/** The player whose text sorts first wins. "o" sees what "x" said, in a conversation of its own. */
async function play({ row, session }: AgentContext<Row>) {
  const ask = async (content: string, role: string) =>
    (await session.complete({ messages: [user(content)], maxTokens: 4, role })).message.content;
  const x = await ask(`x ${row.question}`, "x");
  const o = await ask(`o ${row.question} ${x.length}`, "o");
  const won = x < o ? 1 : -1;
  return { rewards: { x: won + 0.25, o: -won } };
}

/** "o" goes on in the conversation that "x" began, and "x" in that. */
async function takeTurns({ row, session }: AgentContext<Row>) {
  const messages: ChatMessage[] = [user(row.question)];
  for (const role of ["x", "o", "x"]) {
    const { message } = await session.complete({ messages: [...messages], maxTokens: 4, role });
    messages.push(message, user("and"));
  }
  const said = messages.map(({ content }) => String(content).length);
  return { rewards: { x: said[1]! % 3, o: said[3]! % 2 } };
}

let count = 0;
const options = (more: Partial<TrainOptions<Row>> = {}, sections: Record<string, object> = {}): TrainOptions<Row> => ({
  model,
  rows,
  agent: play as never,
  folder: join(models.folder, `roles-${count++}`),
  lora: { rank: 4, alpha: 8, roles: ["x", "o"] },
  steps: 3,
  batchSize: 2,
  n: 2,
  learningRate: 1e-2,
  seed: 1,
  threads: 1,
  advantages: "rae",
  ...more,
  config: {
    data: { max_prompt_length: 64, max_response_length: 64 },
    ...sections,
    actor_rollout_ref: { rollout: { max_num_seqs: 16 }, ...sections.actor_rollout_ref },
  },
});

const withoutRoles = (given: TrainOptions<Row>) => ({ ...given, lora: { rank: 4, alpha: 8 } });

/** The metrics of each step but for times, and the SHA-256 of the adapters by role. */
async function trainAll(given: TrainOptions<Row>) {
  const timed = /^(timing_|perf\/|engine\/)/;
  const steps: Record<string, number>[] = [];
  const run = train(given as TrainOptions);
  for await (const { metrics } of run)
    steps.push(Object.fromEntries(Object.entries(metrics).filter(([name]) => !timed.test(name))));
  const { adapter, adapters, folder } = await run;
  const shas = Object.fromEntries(
    Object.entries(adapters ?? { all: adapter! }).map(([r, file]) => [r, hashSync(file)]),
  );
  return { steps, shas, folder };
}

async function readStep(folder: string, step: number): Promise<DumpLine[]> {
  const lines: DumpLine[] = [];
  for await (const line of readDump(join(folder, "rollouts", `${step}.jsonl`))) lines.push(line);
  return lines;
}

describe("one role with an adapter of its own", () => {
  const alone = async ({ row, session }: AgentContext<Row>) => {
    const { message } = await session.complete({ messages: [user(row.question)], maxTokens: 4, role: "x" });
    return { rewards: { x: message.content.length % 3 } };
  };

  it.each([
    [{}, {}],
    [{ lag: 1 }, {}],
    [{ replay: { share: 1, maxAge: 2 } }, {}],
    [{ advantages: "gae" }, { critic: { optim: { lr: 1e-2 }, model: { lora_rank: 2 } } }],
    [{}, { actor_rollout_ref: { actor: { ppo_mini_batch_size: 1, ppo_epochs: 2, use_kl_loss: true } } }],
    [{}, { actor_rollout_ref: { actor: { old_log_prob: "separate", entropy_coeff: 0.01 } } }],
  ])("trains the bits of the only adapter: %j %j", async (more, sections) => {
    const given = () =>
      options({ agent: alone as never, lora: { rank: 4, alpha: 8, roles: ["x"] }, ...more }, sections);
    const own = await trainAll(given());
    const all = await trainAll(withoutRoles(given()));
    expect(own.shas.x).toBe(all.shas.all);
    const shared = own.steps.map((metrics) =>
      Object.fromEntries(Object.entries(metrics).filter(([name]) => !name.startsWith("role/"))),
    );
    expect(shared).toEqual(all.steps);
    for (const metrics of own.steps)
      for (const name of ["grad_norm", "pg_loss", "entropy", "lr"])
        expect(metrics[`role/x/${name}`], name).toBe(metrics[`actor/${name}`]);
  });
});

describe("an adapter for each role", () => {
  it("learns from the tokens of its role alone, as one adapter in whose loss the other role's tokens are masked", async () => {
    const { shas, steps } = await trainAll(options({ steps: 1 }));
    expect(shas.x).not.toBe(shas.o);
    const task = defineTask({ rows, agent: play, maxPromptLength: 64, maxResponseLength: 64 });
    for (const role of ["x", "o"]) {
      const policy = await loadPolicy(model, { lora: { rank: 4, alpha: 8 }, contextSize: 128, seed: 1, threads: 1 });
      for await (const batch of task.batches(2, { steps: 1, seed: 1 })) {
        const groups = await rollOut(policy, task, batch, { n: 2 });
        const found = advantages.rae(groups);
        for (const { responseMask, timeline } of groups.trajectories)
          for (const { start, end, call } of timeline!.turns)
            if (call && call.request.role !== role) (responseMask as Uint8Array).fill(0, start, end);
        const [result] = await policy.train(groups.toBatch(found), losses.ppo({ clip: 0.2 }), { learningRate: 1e-2 });
        expect(result!.gradNorm).toBe(steps[0]![`role/${role}/grad_norm`]);
      }
      const file = join(models.folder, `masked-${role}.gguf`);
      await policy.save(file);
      await policy.dispose();
      expect(hashSync(file), role).toBe(shas[role]);
    }
    await task.dispose();
  });

  it("is trained by an own loop to the same bits", async () => {
    const { shas } = await trainAll(options());
    const lora = { rank: 4, alpha: 8, roles: ["x", "o"] };
    const policy = await loadPolicy(model, { lora, contextSize: 128, seed: 1, threads: 1 });
    const task = defineTask({ rows, agent: play, maxPromptLength: 64, maxResponseLength: 64 });
    let state: Record<string, number> | undefined;
    for await (const batch of task.batches(2, { steps: 3, seed: 1 })) {
      const groups = await rollOut(policy, task, batch, { n: 2 });
      const found = advantages.rae(groups, state ? { state } : {});
      state = found.state;
      for (const [role, own] of policy.roles!)
        await own.train(groups.toBatch(found, { role }), losses.ppo({ clip: 0.2 }), { learningRate: 1e-2 });
    }
    const file = join(models.folder, "own.gguf");
    await policy.save(file);
    for (const role of ["x", "o"]) expect(hashSync(join(models.folder, `own_${role}.gguf`)), role).toBe(shas[role]);
    await task.dispose();
    await policy.dispose();
  });

  it.each([{}, { lag: 1 }, { replay: { share: 1, maxAge: 2 } }])(
    "goes on from a checkpoint to the same bits, of both: %j",
    async (more) => {
      const whole = await trainAll(options({ ...more, save: { every: 1 } }));
      const resume = new CheckpointStore(whole.folder).folderOf(1);
      const files = Object.keys(JSON.parse(readFileSync(join(resume, "checksums.json"), "utf8")).files).sort();
      const versions = "lag" in more ? ["actor/version_0_o.gguf", "actor/version_0_x.gguf"] : [];
      const buffer = "replay" in more ? ["replay.json"] : [];
      expect(files).toEqual([
        ...versions,
        "actor_o/state.bin",
        "actor_x/state.bin",
        "data.json",
        ...buffer,
        "rng.json",
      ]);
      const resumed = await trainAll(options({ ...more, resume }));
      expect(resumed.shas).toEqual(whole.shas);
      expect(resumed.steps).toEqual(whole.steps.slice(1));
    },
  );

  it("trains the same bits with other numbers of threads and slots", async () => {
    const few = await trainAll(options({ steps: 2 }, { actor_rollout_ref: { rollout: { max_num_seqs: 3 } } }));
    expect((await trainAll(options({ steps: 2, threads: 2 }))).shas).toEqual(few.shas);
  });

  it("samples each role's turns, in whichever conversation, and a replay does so again", async () => {
    const given = options(
      { agent: takeTurns as never, save: { every: 1 } },
      {
        actor_rollout_ref: { actor: { old_log_prob: "separate" } },
      },
    );
    const { folder, steps } = await trainAll(given);
    // Each role's tokens are scored by the adapter that sampled them.
    for (const metrics of steps) expect(metrics["training/rollout_probs_diff_max"]).toBeLessThan(1e-5);
    const lines = await readStep(folder, 3);
    const replay = await openReplay(folder, { train: given as TrainOptions });
    try {
      const results = await replay.replay(lines);
      expect(results.map(({ difference, otherwise }) => difference ?? otherwise)).toEqual(lines.map(() => null));
      const [line] = lines;
      for (const { start, call } of line!.turns.filter((turn) => turn.call)) {
        const candidates = await replay.alternatives(line!, start, { count: 64 });
        const sampled = candidates.find(({ id }) => id === line!.token_ids[start]);
        if (sampled) expect(sampled.logprob, String(call!.request.role)).toBe(line!.rollout_logprobs[start]);
      }
      const before = await readStep(folder, 2);
      const { logprobs } = await replay.scoreNow(before[0]!);
      expect(logprobs.map((value) => value < 0)).toEqual(before[0]!.response_mask.map((bit) => bit === 1));
    } finally {
      await replay.close();
    }
  });

  it("ends the run at a turn of a role without one", async () => {
    const given = options({ lora: { rank: 4, alpha: 8, roles: ["x", "y"] } });
    await expect(train(given as TrainOptions)).rejects.toMatchObject({ code: "config/unknown-role" });
  });

  it("is refused with all weights, with versions that take over, and with workers", async () => {
    const refused = { code: "config/bad-value" };
    const named = { lora_roles: ["x", "o"] };
    const full = options({ lora: null }, { actor_rollout_ref: { model: named } });
    await expect(train(full as TrainOptions)).rejects.toMatchObject(refused);
    await expect(train(options({ lag: 1, partialRollout: "switch" }) as TrainOptions)).rejects.toMatchObject(refused);
    for (const roles of [[], ["a", "A"], ["a b"]])
      await expect(train(options({ lora: { roles } }) as TrainOptions)).rejects.toMatchObject(refused);
    const { config, registries } = makeConfig(makeAgentTask(options() as TrainOptions));
    const bus = {} as TrainingBus;
    await expect(openTraining(config, process.cwd(), { registries, bus })).rejects.toMatchObject(refused);
  });

  it("exchanges adapters without a bit's change, whichever was there before", async () => {
    const lora = { rank: 4, alpha: 8, roles: ["x", "o"] };
    const policy = await loadPolicy(model, { lora, contextSize: 128, seed: 1, threads: 1 });
    const plain = await loadModel({ path: model, contextSize: 128, threads: 1, lora: { rank: 4, alpha: 8 }, seed: 1 });
    const batch = (token: number) => [{ tokenIds: [token, 5, 6, 7], lossMask: [0, 1, 1, 1], columns: {} }];
    const learn = { learningRate: 1e-2 };
    const loss = ({ logprobs }: { logprobs: Float32Array }) => ({
      loss: -logprobs.reduce((a, b) => a + b, 0),
      dLogprobs: new Float32Array(logprobs.length).fill(-1),
    });
    const [x, o] = ["x", "o"].map((role) => policy.roles!.get(role)!.engine);
    for (const token of [3, 4, 9]) {
      await plain.train(batch(token), loss, learn);
      await Promise.all([x!.train(batch(token), loss, learn), o!.train(batch(token + 1), loss, learn)]);
      const [own, other, expected] = await Promise.all([x!, o!, plain].map((e) => e.score(batch(token))));
      expect(own![0]!.logprobs).toEqual(expected![0]!.logprobs);
      expect(other![0]!.logprobs).not.toEqual(expected![0]!.logprobs);
    }
    await policy.dispose();
    await plain.dispose();
  });
});
