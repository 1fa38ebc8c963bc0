/**
 * Conversations that wait: a policy of a few thousand weights asks, a tool sleeps, the policy answers. Two cores hold
 * as many of them as there are slots, so that several workers on one machine help with waiting as more machines would.
 */
import { join } from "node:path";
import { makeTinyModel } from "@cria/engine/testing";
import { runTrainingStep, type Training } from "cria";
import { median } from "../../measure.js";
import type { Row } from "../../row.js";
import { WAITING_CASE } from "./cases.js";
import { Crew, openTrainingOf, removeFolder, writeEnvironment } from "./trainings.js";

const WORKERS = [1, 2, 4, 8] as const;
const SLEEP_S = 2;
/** Conversations at once, of each worker. */
const SLOTS = 4;
/** Share of N times the rate of one worker. */
const TARGET = 0.9;
const SAMPLES = 4;
/** Conversations that each slot holds in a step, one after another: the last ones end together. */
const WAVES = 8;
/** Counted, after a short one that is not. */
const STEPS = 3;

/**
 * It sleeps as a slow tool does; its reward differs from conversation to conversation, so that there is something to
 * learn.
 */
const agent = `import { setTimeout as sleep } from "node:timers/promises";
export async function agent({ row, session, signal }) {
  const question = row.prompt[0];
  const call = await session.complete({ messages: [question], maxTokens: 4 });
  await sleep(${1000 * SLEEP_S}, undefined, { signal });
  const answer = { role: "user", content: "42" };
  const end = await session.complete({ messages: [question, call.message, answer], maxTokens: 4 });
  return [...end.message.content].filter((c) => c < "a").length / 4;
}
`;

interface Measured {
  workers: number;
  /** Conversations per second, of each counted step. */
  rates: number[];
  /** Seconds of all processes' CPU for each conversation. */
  cpu: number;
}

export async function measureWaitingTools(log: (text: string) => void): Promise<Row[]> {
  const most = WORKERS.at(-1)!;
  const folder = await writeEnvironment(makeConfig(), {
    "agent.mjs": agent,
    "loops.yaml": JSON.stringify({ agent_loops: [{ name: "waiting", agent: "./agent.mjs#agent" }] }),
    "rows.jsonl": Array.from(
      { length: countPrompts(most) },
      (_, i) => `${JSON.stringify({ data_source: "waiting", prompt: [{ role: "user", content: `${i}` }] })}\n`,
    ).join(""),
  });
  const crew = await Crew.open();
  let session: Training | undefined;
  try {
    await makeTinyModel(join(folder, "tiny.gguf"), { seed: 5, embeddingScale: 0.25 });
    session = await openTrainingOf(folder, [], crew.bus);
    const measured: Measured[] = [];
    let step = 0;
    const take = (count: number) => runStep(session!, count, ++step);
    for (const workers of WORKERS) {
      while (crew.workers.length < workers)
        crew.add({ id: `worker-${crew.workers.length}`, folder, modelDir: folder, threads: 1, slots: SLOTS });
      await crew.ready(session);
      // A first round, which includes one-time work.
      await take(workers);
      const before = crew.cpuSeconds();
      const rates: number[] = [];
      for (let i = 0; i < STEPS; i++) rates.push(await take(countPrompts(workers)));
      const after = crew.cpuSeconds();
      const conversations = STEPS * SAMPLES * countPrompts(workers);
      const spent = (["coordinator", "server", "workers"] as const).map(
        (who) => (after[who] - before[who]) / conversations,
      );
      measured.push({ workers, rates, cpu: spent.reduce((sum, seconds) => sum + seconds, 0) });
      log(
        `workers: ${workers}; conversations/s: ${rates.map((rate) => rate.toFixed(2))}; ms of CPU for each, coordinator, server, workers: ${spent.map((seconds) => (1e3 * seconds).toFixed(1))}`,
      );
    }
    return makeRows(measured);
  } finally {
    await session?.dispose();
    await crew.close();
    await removeFolder(folder);
  }
}

const countPrompts = (workers: number) => (workers * SLOTS * WAVES) / SAMPLES;

/** @returns conversations per second of the step's rollouts. */
async function runStep(session: Training, prompts: number, step: number): Promise<number> {
  const rows = session.trainRows.slice(0, prompts);
  const { trajectories, metrics } = await runTrainingStep(session, { rows, step, epoch: 0 });
  const [elsewhere, failed] = [metrics["cluster/jobs_elsewhere"]!, trajectories.filter(({ error }) => error)];
  if (failed.length > 0) throw new Error(`${failed.length} conversations failed: ${failed[0]!.error}`);
  if (elsewhere < trajectories.length || metrics["cluster/jobs_here"] !== 0)
    throw new Error(`workers did ${elsewhere} jobs, the coordinator ${metrics["cluster/jobs_here"]}`);
  return trajectories.length / metrics["timing_s/gen"]!;
}

function makeRows(measured: readonly Measured[]): Row[] {
  const one = median(measured[0]!.rates);
  return measured.flatMap(({ workers, rates, cpu }): Row[] => {
    const rate = median(rates);
    const isJudged = workers > 1;
    return [
      {
        case: WAITING_CASE,
        metric: `conversations per second, ${workers} ${workers === 1 ? "worker" : "workers"}`,
        ours: rate,
        peers: { "as many times one worker": workers * one, "sleep alone": (workers * SLOTS) / SLEEP_S },
        target: isJudged ? `at least ${TARGET} of as many times one worker` : null,
        met: isJudged ? rate >= TARGET * workers * one : null,
      },
      {
        case: WAITING_CASE,
        metric: `milliseconds of CPU per conversation, all processes, the rest of the step too, ${workers} ${workers === 1 ? "worker" : "workers"}`,
        ours: 1e3 * cpu,
        peers: {},
        target: null,
        met: null,
      },
    ];
  });
}

function makeConfig() {
  return {
    actor_rollout_ref: {
      model: { path: "tiny.gguf", lora_rank: 4, lora_alpha: 8 },
      actor: { optim: { lr: 1e-4 }, ppo_mini_batch_size: countPrompts(WORKERS.at(-1)!), ppo_max_token_len: 8192 },
      rollout: {
        n: SAMPLES,
        prompt_length: 48,
        response_length: 48,
        max_num_seqs: 16,
        agent: { agent_loop_config_path: "loops.yaml", default_agent_loop: "waiting" },
      },
    },
    data: { train_files: "rows.jsonl", train_batch_size: 1, max_prompt_length: 48, max_response_length: 48 },
    cluster: { take_part: false, audit: 0 },
    trainer: { threads: 1, device: "cpu", total_training_steps: 1000 },
  };
}
