/**
 * Whole GRPO steps of the demo (examples/calculator): 16 prompts x 8 samples, up to 3 turns with the calculator, 2
 * mini-batches, LoRA. The peer does the same step in PyTorch (peers/torch/grpo_peer.py), from the same adapter and
 * rows, but without the pass that recomputes the sampler's logprobs. Each trains its own copy, so their episodes drift
 * apart over the rounds; both numbers of tokens are reported. Logprobs are compared before.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Trajectory } from "@cria/core";
import { openTraining, runTrainingStep, type StepMetrics, type Training } from "cria";
import { loadConfig, trainConfigSchema } from "cria/config";
import type { BenchmarkOptions } from "../benchmark.js";
import { compareRuns, type Figures, median } from "../measure.js";
import { besideTorch, openTorch, type Torch, TorchPeer } from "../peers/torch/torch-peer.js";
import type { Measured, Row } from "../row.js";
import { THREADS } from "../settings.js";

const configFile = join(import.meta.dirname, "..", "..", "examples", "calculator", "config.yaml");
const ROUNDS = 9;

interface PeerStep {
  seconds: number;
  rollout: number;
  training: number;
  reward: number;
  tokens: number;
}

interface Taken {
  rows: Training["trainRows"];
  trajectories: Trajectory[];
  metrics: StepMetrics;
  seconds: number;
}

export async function run({ includes, log }: BenchmarkOptions): Promise<Measured> {
  const title = "GRPO step of the demo, 16 x 8 samples";
  if (!includes(title)) return { rows: [] };
  const torch = await openTorch(THREADS, log);
  const open = async (deterministic: boolean) => {
    const changes = [`trainer.threads=${THREADS}`, `actor_rollout_ref.rollout.deterministic=${deterministic}`];
    return openTraining(loadConfig(trainConfigSchema, configFile, changes).values, dirname(configFile));
  };
  const session = await open(true);
  const free = await open(false);
  const { config } = session;
  const folder = await mkdtemp(join(tmpdir(), "cria-step-"));
  const peer = torch && new TorchPeer(torch, "grpo_peer.py");
  try {
    const adapter = join(folder, "adapter.gguf");
    await session.policy.engine.saveAdapter(adapter);
    const { info } = session.policy.engine;
    const { lr, betas } = config.actor_rollout_ref.actor.optim;
    await peer?.ask({ do: "load", path: info.path, adapter, threads: info.threads, learningRate: lr, betas });

    const taken: Taken[] = [];
    const takenFree: Taken[] = [];
    const peerSteps: PeerStep[] = [];
    const takeStep = async (of: Training, steps: Taken[]) => {
      const step = steps.length + 1;
      const first = (step - 1) * config.data.train_batch_size;
      const rows = of.trainRows.slice(first, first + config.data.train_batch_size);
      const started = performance.now();
      const { trajectories, metrics } = await runTrainingStep(of, { rows: rows, step: step, epoch: 0 });
      const seconds = (performance.now() - started) / 1e3;
      steps.push({ rows, trajectories, metrics, seconds });
      return 1 / seconds;
    };
    const ours = async () => {
      const figure = await takeStep(session, taken);
      if (taken.length === 1 && peer) await checkAgreement(session, taken[0]!.trajectories, peer, log);
      return figure;
    };
    // It gets the prompts of our last step as tokens.
    const theirs = async () => {
      const { rows, trajectories } = taken.at(-1)!;
      const prompts = trajectories.filter(({ sampleIndex }) => sampleIndex === 0).map(takePrompt);
      const answers = rows.map((row) => row.groundTruth);
      const samples = config.actor_rollout_ref.rollout.n;
      peerSteps.push(await peer!.ask<PeerStep>({ do: "step", prompts, answers, samples }));
      return 1 / peerSteps.at(-1)!.seconds;
    };
    const both = { ours, free: () => takeStep(free, takenFree) };
    const contenders: Record<string, () => Promise<number>> = peer ? { ...both, torch: theirs } : both;
    const figures = await compareRuns(contenders, { warmUp: 1, rounds: ROUNDS });
    // The first round warms up.
    const rows = makeRows(title, figures, taken.slice(1), peerSteps.slice(1), torch);
    return { rows, ...(torch && { peerChecks: [torch.check] }) };
  } finally {
    peer?.close();
    await Promise.all([session.dispose(), free.dispose()]);
    await rm(folder, { recursive: true, force: true });
  }
}

const takePrompt = ({ tokenIds, promptLength }: Trajectory) => [...tokenIds.subarray(0, promptLength)];

/** The peer's model, tokenizer and sampling against the session's first rollouts, which the same weights made. */
async function checkAgreement(
  session: Training,
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

  // The tokens after a tool call must be the same.
  const wrapped = await peer.ask<{ tokens: number[][] }>({ do: "wrap", results: ["43", "error: invalid expression"] });
  for (const [i, result] of ["43", "error: invalid expression"].entries()) {
    const text = `\n<|im_start|>user\n<tool_response>\n${result}\n</tool_response><|im_end|>\n<|im_start|>assistant\n`;
    const tokens = session.policy.engine.tokenize(text);
    if (tokens.join() !== wrapped.tokens[i]!.join())
      throw new Error(`PyTorch's tokens of ${JSON.stringify(text)} differ`);
  }
  const isLikeOurs = trajectories.some(({ tokenIds }) =>
    session.policy.engine.detokenize(tokenIds).includes("<|im_end|>\n<|im_start|>user\n<tool_response>\n"),
  );
  if (!isLikeOurs) throw new Error("the tool's texts in our rollouts are not wrapped as the peer wraps them");
}

function makeRows(
  title: string,
  figures: Record<string, Figures>,
  taken: readonly Taken[],
  peerSteps: readonly PeerStep[],
  torch: Torch | null,
): Row[] {
  const share = (pick: (step: Taken) => number) => median(taken.map((step) => pick(step) / step.seconds));
  const seconds = (name: string) => (step: Taken) => step.metrics[`timing_s/${name}`] ?? 0;
  const [rollout, scoring, training] = [seconds("gen"), seconds("old_log_prob"), seconds("update_actor")];
  const peerMedian = (pick: (step: PeerStep) => number) =>
    peerSteps.length > 0 ? median(peerSteps.map(pick)) : undefined;
  const inform = (metric: string, ours: number, theirs?: number): Row => ({
    case: title,
    metric,
    ours,
    ...besideTorch(torch, theirs),
    target: null,
    met: null,
  });
  const rest = share((step) => step.seconds - rollout(step) - scoring(step) - training(step));
  const steps = figures.ours!.median;
  const peerFigure = figures.torch?.median;
  const free = inform("steps per second, deterministic: false, median", figures.free!.median, peerFigure);
  return [
    {
      ...inform("steps per second, deterministic: true, median", steps, peerFigure),
      target: peerFigure ? "at least 3.5 times PyTorch's" : null,
      met: peerFigure ? steps >= 3.5 * peerFigure : null,
    },
    { ...free, peers: { ...free.peers, "ours, deterministic: true": steps } },
    inform(
      "tokens of all trajectories of a step, median",
      median(taken.map((step) => step.metrics["perf/total_num_tokens"]!)),
      peerMedian((step) => step.tokens),
    ),
    inform(
      "share of rollout",
      share(rollout),
      peerMedian((step) => step.rollout / step.seconds),
    ),
    inform("share of scoring", share(scoring)),
    inform(
      "share of training",
      share(training),
      peerMedian((step) => step.training / step.seconds),
    ),
    { ...inform("share of everything else", rest), target: "at most 0.05", met: rest <= 0.05 },
    inform(
      "seconds of rollout, median",
      median(taken.map(rollout)),
      peerMedian((step) => step.rollout),
    ),
    inform(
      "seconds of scoring and training, median",
      median(taken.map((step) => scoring(step) + training(step))),
      peerMedian((step) => step.training),
    ),
  ];
}
