// Bring your own loss: its value and its derivative by each token's logprob.   npm start [model.gguf]
// In a config the same object is one line: `actor.policy_loss.loss_mode: ./own-loss.ts#saturatingLoss`.
import { fileURLToPath } from "node:url";
import { composePolicyLoss, defaultPolicyLoss, type PolicyLoss } from "@cria/algorithms";
import type { TrainSequence } from "@cria/core";
import { loadModel } from "@cria/engine";

const WIDTH = 0.2;

/**
 * The policy gradient, saturating smoothly instead of by a clip: with r = p / p_old, the loss of a token is
 * -A * WIDTH * tanh((r - 1) / WIDTH), and its derivative by the logprob -A * r / cosh^2((r - 1) / WIDTH).
 */
export const saturatingLoss: PolicyLoss = {
  evaluate({ logprobs, oldLogprobs, advantages }) {
    const ratios = Float64Array.from(logprobs, (logprob, i) => Math.exp(logprob - oldLogprobs[i]!));
    return {
      losses: ratios.map((r, i) => -advantages[i]! * WIDTH * Math.tanh((r - 1) / WIDTH)),
      gradients: ratios.map((r, i) => (-advantages[i]! * r) / Math.cosh((r - 1) / WIDTH) ** 2),
      metrics: { saturated: ratios.map((r) => (Math.abs(r - 1) > WIDTH ? 1 : 0)) },
    };
  },
};

// A derivative is easily wrong: compare it with differences before training with it.
const evaluate = (logprob: number) =>
  saturatingLoss.evaluate(
    {
      logprobs: Float32Array.of(logprob),
      oldLogprobs: Float32Array.of(-1),
      advantages: Float32Array.of(2),
      offsets: Int32Array.of(0, 1),
      columns: {},
    },
    defaultPolicyLoss,
  );
const numeric = (evaluate(-0.875).losses[0]! - evaluate(-0.9375).losses[0]!) / 0.0625;
console.log(`derivative ${evaluate(-0.90625).gradients[0]!.toFixed(3)}, by differences ${numeric.toFixed(3)}`);

const path = process.argv[2] ?? fileURLToPath(new URL("../../models/cria-tiny.gguf", import.meta.url));
const model = await loadModel({ path, threads: 1, lora: { rank: 8 } });

// One prompt, one answer to reinforce and one to avoid.
const prompt = model.tokenize("<|im_start|>user\nWhat is 2+3?<|im_end|>\n<|im_start|>assistant\n");
const samples = [
  { answer: "#### 5<|im_end|>", advantage: 1 },
  { answer: "#### 6<|im_end|>", advantage: -1 },
].map(({ answer, advantage }) => {
  const tokenIds = Int32Array.from([...prompt, ...model.tokenize(answer)]);
  const lossMask = Uint8Array.from(tokenIds, (_, t) => (t >= prompt.length ? 1 : 0));
  return { tokenIds, lossMask, advantage, answer };
});
const scoreAll = () => model.score(samples.map(({ tokenIds }) => ({ tokenIds, from: prompt.length })));

// Entropy bonus, KL term and the mean over tokens are composed around your loss.
const loss = composePolicyLoss({ ...defaultPolicyLoss, lossMode: saturatingLoss, entropyCoeff: 0.001 });
const old = await scoreAll();
const batch: TrainSequence[] = samples.map(({ tokenIds, lossMask, advantage }, i) => ({
  tokenIds,
  lossMask,
  columns: { advantages: Float32Array.from(tokenIds, () => advantage), oldLogprobs: old[i]!.logprobs },
}));
for (let step = 1; step <= 4; step++) {
  const result = await model.train(batch, loss, { learningRate: 2e-3 });
  console.log(`step ${step}: loss ${result.loss.toFixed(4)}, gradient ${result.gradNorm.toFixed(3)}`);
}
const sum = (values: Float32Array) => values.reduce((a, b) => a + b, 0);
(await scoreAll()).forEach(({ logprobs }, i) => {
  console.log(`${samples[i]!.answer}: logprob ${sum(old[i]!.logprobs).toFixed(2)} -> ${sum(logprobs).toFixed(2)}`);
});

await model.dispose();
