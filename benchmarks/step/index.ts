/**
 * Whole GRPO steps of the demo (examples/calculator): 16 prompts x 8 samples, up to 3 turns with the calculator, 2
 * mini-batches, LoRA. The peer does the same step in PyTorch (peers/torch/grpo_peer.py), from the same adapter and rows,
 * and saves itself the pass that recomputes the sampler's logprobs. Each trains its own copy, so their episodes drift
 * apart over the rounds; both numbers of tokens are told. Logprobs are compared before.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Trajectory } from "@cria/core";
import { loadConfig, openSession, runTrainingStep, type Session, type StepMetrics, trainConfigSchema } from "cria";
import type { BenchmarkOptions } from "../benchmark.js";
import { compareRuns, type Figures } from "../measure.js";
import { findTorch, TorchPeer } from "../peers/torch/torch-peer.js";
import type { Row } from "../row.js";

const configFile = join(import.meta.dirname, "..", "..", "examples", "calculator", "config.yaml");
const ROUNDS = 9;
const threads = process.env.CRIA_BENCHMARK_THREADS;

interface PeerStep {
  seconds: number;
  rollout: number;
  training: number;
  reward: number;
  tokens: number;
}

interface Taken {
  rows: Session["trainRows"];
  trajectories: Trajectory[];
  metrics: StepMetrics;
  seconds: number;
}

export async function run({ includes, log }: BenchmarkOptions): Promise<Row[]> {
  const title = "GRPO step of the demo, 16 x 8 samples";
  if (!includes(title)) return [];
  const torch = findTorch();
  if (!torch) log("no python3 with PyTorch (CRIA_TORCH_PYTHON names one): rows come without it");
  const { values: config } = loadConfig(trainConfigSchema, configFile, threads ? [`trainer.threads=${threads}`] : []);
  const session = await openSession(config, dirname(configFile), { silent: true });
  const folder = await mkdtemp(join(tmpdir(), "cria-step-"));
  const peer = torch && new TorchPeer(torch.python, "grpo_peer.py");
  try {
    const adapter = join(folder, "adapter.gguf");
    await session.engine.saveAdapter(adapter);
    const { info } = session.engine;
    const { lr, betas } = config.actor_rollout_ref.actor.optim;
    await peer?.ask({ do: "load", path: info.path, adapter, threads: info.threads, learningRate: lr, betas });

    const taken: Taken[] = [];
    const peerSteps: PeerStep[] = [];
    const ours = async () => {
      const step = taken.length + 1;
      const first = (step - 1) * config.data.train_batch_size;
      const rows = session.trainRows.slice(first, first + config.data.train_batch_size);
      const started = performance.now();
      const { trajectories, metrics } = await runTrainingStep(session, rows, step, 0);
      const seconds = (performance.now() - started) / 1e3;
      taken.push({ rows, trajectories, metrics, seconds });
      if (step === 1 && peer) await checkAgreement(session, trajectories, peer, log);
      return 1 / seconds;
    };
    // Behind ours in every round: it gets the prompts of that step as tokens.
    const theirs = async () => {
      const { rows, trajectories } = taken.at(-1)!;
      const prompts = trajectories.filter(({ sampleIndex }) => sampleIndex === 0).map(takePrompt);
      const answers = rows.map((row) => row.groundTruth);
      const samples = config.actor_rollout_ref.rollout.n;
      peerSteps.push(await peer!.ask<PeerStep>({ do: "step", prompts, answers, samples }));
      return 1 / peerSteps.at(-1)!.seconds;
    };
    const contenders: Record<string, () => Promise<number>> = peer ? { ours, torch: theirs } : { ours };
    const figures = await compareRuns(contenders, { warmUp: 1, rounds: ROUNDS });
    // The first round warms up.
    return makeRows(title, figures, taken.slice(1), peerSteps.slice(1), torch && `PyTorch ${torch.version}`);
  } finally {
    peer?.close();
    await session.dispose();
    await rm(folder, { recursive: true, force: true });
  }
}

const takePrompt = ({ tokenIds, promptLength }: Trajectory) => [...tokenIds.subarray(0, promptLength)];

/** The peer's model, tokenizer and sampling against the session's first rollouts, which the same weights made. */
async function checkAgreement(
  session: Session,
  trajectories: readonly Trajectory[],
  peer: TorchPeer,
  log: (text: string) => void,
): Promise<void> {
  let worst = 0;
  for (const { tokenIds, responseMask, rolloutLogprobs } of trajectories.filter((_, i) => i % 16 === 0)) {
    const { logprobs } = await peer.ask<{ logprobs: number[] }>({ do: "score", tokens: [...tokenIds] });
    for (let t = 1; t < tokenIds.length; t++)
      if (responseMask[t]) worst = Math.max(worst, Math.abs(logprobs[t - 1]! - rolloutLogprobs[t]!));
  }
  log(`logprobs of our sampler and PyTorch's differ by at most ${worst.toExponential(1)}`);
  if (worst > 2e-3) throw new Error(`logprobs differ from PyTorch's by ${worst}`);

  // What follows a tool call must be the same tokens.
  const wrapped = await peer.ask<{ tokens: number[][] }>({ do: "wrap", results: ["43", "error: invalid expression"] });
  for (const [i, result] of ["43", "error: invalid expression"].entries()) {
    const text = `\n<|im_start|>user\n<tool_response>\n${result}\n</tool_response><|im_end|>\n<|im_start|>assistant\n`;
    const tokens = session.engine.tokenize(text);
    if (tokens.join() !== wrapped.tokens[i]!.join())
      throw new Error(`PyTorch's tokens of ${JSON.stringify(text)} differ`);
  }
  const isLikeOurs = trajectories.some(({ tokenIds }) =>
    session.engine.detokenize(tokenIds).includes("<|im_end|>\n<|im_start|>user\n<tool_response>\n"),
  );
  if (!isLikeOurs) throw new Error("the tool's texts in our rollouts are not wrapped as the peer wraps them");
}

function makeRows(
  title: string,
  figures: Record<string, Figures>,
  taken: readonly Taken[],
  peerSteps: readonly PeerStep[],
  peerName: string | null,
): Row[] {
  const beside = (value: number | undefined) => (peerName && value !== undefined ? { [peerName]: value } : {});
  const share = (pick: (step: Taken) => number) => median(taken.map((step) => pick(step) / step.seconds));
  const seconds = (name: string) => (step: Taken) => step.metrics[`timing_s/${name}`] ?? 0;
  const [rollout, scoring, training] = [seconds("gen"), seconds("old_log_prob"), seconds("update_actor")];
  const peerShare = (pick: (step: PeerStep) => number) =>
    beside(peerSteps.length > 0 ? median(peerSteps.map((step) => pick(step) / step.seconds)) : undefined);
  const inform = (metric: string, ours: number, peers: Record<string, number>): Row => ({
    case: title,
    metric,
    ours,
    peers,
    target: null,
    met: null,
  });
  const rest = share((step) => step.seconds - rollout(step) - scoring(step) - training(step));
  const steps = figures.ours!.median;
  const peerFigure = figures.torch?.median;
  return [
    {
      ...inform("steps per second, median", steps, beside(peerFigure)),
      target: peerFigure ? "at least 2 times PyTorch's" : null,
      met: peerFigure ? steps >= 2 * peerFigure : null,
    },
    inform(
      "tokens of all trajectories of a step, median",
      median(taken.map((step) => step.metrics["perf/total_num_tokens"]!)),
      beside(peerSteps.length > 0 ? median(peerSteps.map((step) => step.tokens)) : undefined),
    ),
    inform(
      "share of rollout",
      share(rollout),
      peerShare((step) => step.rollout),
    ),
    inform("share of scoring", share(scoring), {}),
    inform(
      "share of training",
      share(training),
      peerShare((step) => step.training),
    ),
    { ...inform("share of everything else", rest, {}), target: "at most 0.05", met: rest <= 0.05 },
    inform(
      "seconds of rollout, median",
      median(taken.map(rollout)),
      beside(peerSteps.length > 0 ? median(peerSteps.map((step) => step.rollout)) : undefined),
    ),
    inform(
      "seconds of scoring and training, median",
      median(taken.map((step) => scoring(step) + training(step))),
      beside(peerSteps.length > 0 ? median(peerSteps.map((step) => step.training)) : undefined),
    ),
  ];
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1]!;
}
