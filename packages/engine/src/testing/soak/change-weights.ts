import { CriaError, type LossFunction, type OptimizerOptions, type TrainSequence } from "@cria/core";
import type { LlamaModel } from "../../llama-model.js";
import type { TensorPart } from "../../native-types.js";
import { loadValueModel } from "../../value-model.js";
import type { SeededRandom } from "./seeded-random.js";
import type { SoakState } from "./soak-state.js";

const PARTS: readonly TensorPart[] = ["value", "moment1", "moment2"];

/** A trainer's state: tensors, Adam's moments, its step count. */
export interface WeightState {
  stepCount: number;
  tensors: { name: string; part: TensorPart; values: Float32Array }[];
}

export async function saveState(model: LlamaModel): Promise<WeightState> {
  const tensors: WeightState["tensors"] = [];
  for (const { name, trainable } of model.listTensors())
    if (trainable) for (const part of PARTS) tensors.push({ name, part, values: await model.readTensor(name, part) });
  return { stepCount: model.stepCount, tensors };
}

/** Puts a state back and reads it again. */
export async function restoreState(state: SoakState, saved: WeightState): Promise<void> {
  for (const { name, part, values } of saved.tensors) await state.model.writeTensor(name, values, part);
  state.model.stepCount = saved.stepCount;
  for (const { name, part, values } of saved.tensors) {
    const back = await state.model.readTensor(name, part);
    if (!values.every((value, i) => Object.is(value, back[i])))
      state.fail(`${name}, ${part}: restored to other values`);
  }
  state.counts.statesRestored++;
}

/** Sum of advantage x logprob, and a small entropy term. */
const policyGradient: LossFunction = ({ logprobs, entropy, columns, totals }) => {
  const scale = -1 / totals.tokens;
  const dLogprobs = columns.advantages!.map((advantage) => scale * advantage);
  let loss = 0;
  for (const [i, logprob] of logprobs.entries()) loss += dLogprobs[i]! * logprob + 0.01 * scale * entropy[i]!;
  return { loss, dLogprobs, dEntropy: new Float32Array(logprobs.length).fill(0.01 * scale) };
};

/** A few optimizer steps, some of which are interrupted or must be refused. */
export async function trainSome(state: SoakState, random: SeededRandom): Promise<void> {
  const optimizer: OptimizerOptions = { learningRate: 1e-3, maxGradNorm: 1, weightDecay: 0.01 };
  for (let i = random.between(1, 3); i > 0; i--) {
    const batch = makeBatch(state, random);
    const kind = random.next();
    if (kind < 0.1) {
      const failing: LossFunction = () => {
        throw new Error("a loss that throws");
      };
      await expectRefusal(state, state.model.train(batch, failing, optimizer), /a loss that throws/);
    } else if (kind < 0.2) {
      const infinite: LossFunction = ({ logprobs }) => ({ loss: 0, dLogprobs: logprobs.map(() => Number.NaN) });
      await expectRefusal(state, state.model.train(batch, infinite, optimizer), /not finite/);
    } else if (kind < 0.35) {
      // The interruption may come before, during or after the step.
      const signal = AbortSignal.timeout(random.between(0, 20));
      await state.model
        .train(batch, policyGradient, optimizer, { signal })
        .then(() => state.counts.trainSteps++)
        .catch((error: Error) => {
          if (!signal.aborted) throw error;
          state.counts.trainRefused++;
        });
    } else {
      const microBatchTokens = random.chance(0.3) ? 256 : undefined;
      await state.model.train(batch, policyGradient, random.chance(0.2) ? null : optimizer, { microBatchTokens });
      state.counts.trainSteps++;
    }
  }
}

async function expectRefusal(state: SoakState, training: Promise<unknown>, message: RegExp): Promise<void> {
  const error = await training.then(
    () => null,
    (reason: Error) => reason,
  );
  if (!error || !message.test(error.message)) state.fail(`train() should have said ${message}, but: ${error?.stack}`);
  state.counts.trainRefused++;
}

/** Prompts with several answers each, as in a group of rollouts. */
function makeBatch(state: SoakState, random: SeededRandom): TrainSequence[] {
  const { vocabSize } = state.model.info;
  const draw = (count: number) => Array.from({ length: count }, () => random.between(0, vocabSize - 1));
  return Array.from({ length: random.between(1, 3) }, () => draw(random.between(4, 60))).flatMap((prompt) =>
    Array.from({ length: random.between(1, 5) }, () => {
      const tokenIds = [...prompt, ...draw(random.between(1, 30))];
      const lossMask = tokenIds.map((_, t) => (t >= prompt.length ? 1 : 0));
      return { tokenIds, lossMask, columns: { advantages: tokenIds.map(() => 2 * random.next() - 1) } };
    }),
  );
}

/** A critic from load to dispose: values, two steps, values again. */
export async function trainCritic(state: SoakState, random: SeededRandom): Promise<void> {
  const critic = await loadValueModel({ path: state.path, threads: 1, lora: { rank: 2, alpha: 4 } });
  state.counts.modelsLoaded++;
  try {
    const batch = makeBatch(state, random);
    for (let i = 0; i < 2; i++) {
      await critic.train(
        batch,
        ({ values, columns, totals }) => {
          const dValues = values.map((v, t) => (v - columns.advantages![t]!) / totals.tokens);
          return { loss: dValues.reduce((sum, d) => sum + d * d, 0), dValues };
        },
        { learningRate: 1e-2 },
      );
      state.counts.criticSteps++;
    }
    const values = await critic.values(batch);
    if (!values.every((row) => row.every(Number.isFinite))) state.fail("the critic's values are not finite");
  } finally {
    await critic.dispose();
  }
}

/** Calls that must be refused with one of our errors, and change nothing. */
export async function provokeRefusals(state: SoakState): Promise<void> {
  const { model, path, folder } = state;
  const { vocabSize, contextSize } = model.info;
  const sequence = model.createSequence();
  const gone = model.createSequence();
  gone.dispose();
  const calls: Record<string, () => unknown> = {
    "token outside the vocabulary": () => sequence.generate([vocabSize], { maxTokens: 1 }),
    "no tokens": () => sequence.generate([], { maxTokens: 1 }),
    "longer than the context": () => sequence.generate([1], { maxTokens: contextSize }),
    "temperature that is no number": () => sequence.generate([1], { maxTokens: 1, temperature: Number.NaN }),
    "disposed sequence": () => gone.generate([1], { maxTokens: 1 }),
    "scoring one token": () => model.score([{ tokenIds: [1] }]),
    "tensor of another size": () => model.writeTensor("blk.0.attn_q.weight.lora_a", new Float32Array(3)),
    "unknown tensor": () => model.readTensor("nothing"),
    "folder that is not there": () => model.saveAdapter(`${folder}/missing/adapter.gguf`),
    "adapter that is not there": () => loadValueModel({ path, lora: { path: `${folder}/missing.gguf` } }),
  };
  for (const [name, call] of Object.entries(calls)) {
    try {
      await call();
      state.fail(`${name}: not refused`);
    } catch (error) {
      if (!(error instanceof CriaError)) state.fail(`${name}: ${(error as Error).stack}`);
    }
    state.counts.refused++;
  }
  if (sequence.tokenCount !== 0 || sequence.tokenIds.length !== 0) state.fail("a refused request left tokens behind");
  sequence.dispose();
}
