import { join } from "node:path";
import type { ChatMessage } from "@cria/core";
import { TinyModels } from "@cria/engine/testing";
import type { AgentContext } from "@cria/rollout";
import { afterAll, describe, expect, it } from "vitest";
import { train } from "../run/train.js";
import { dropTimes } from "../testing/drop-times.js";
import { readWeights } from "../testing/read-weights.js";
import { openTinyTraining, type TinyTraining, type TinyTrainingOptions } from "../testing/tiny-training.js";
import { openRegistries } from "../user-code/registries.js";
import { runTrainingStep, type StepInputs } from "./training-step.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

type Mode = "auto" | "separate" | "compare";

/** Counts passes over the policy's own weights, without those of the reference. */
const countPasses = ({ scores }: TinyTraining) => scores.filter(({ adapter }) => adapter !== false).length;

/** Takes two steps; returns their metrics, the weights after them, and the passes taken in addition to the updates. */
async function takeSteps(mode: Mode, options: TinyTrainingOptions = {}, more: Partial<StepInputs> = {}) {
  const training = await openTinyTraining(models, { ...options, actor: { ...options.actor, old_log_prob: mode } });
  const metrics: Record<string, number>[] = [];
  for (const step of [1, 2])
    metrics.push(
      dropTimes((await runTrainingStep(training, { rows: training.trainRows, step, epoch: 0, ...more })).metrics),
    );
  const weights = await readWeights(training);
  const passes = countPasses(training);
  await training.dispose();
  return { metrics, weights, passes };
}

/** Drops engine metrics: they depend on time, because any of several conversations may evaluate a shared prefix. */
const dropVarying = (metrics: Record<string, number>) =>
  Object.fromEntries(Object.entries(dropTimes(metrics)).filter(([name]) => !name.startsWith("engine/")));

const pick = (name: string) => (metrics: Record<string, number>) => metrics[name];
const without = (metrics: readonly Record<string, number>[], ...names: string[]) =>
  metrics.map((each) => Object.fromEntries(Object.entries(each).filter(([name]) => !names.includes(name))));

describe("the old logprobs of a step with one update", () => {
  const quantized = (type: "f16" | "bf16" | "q8_0" | "q4_0" | "q4_K") => async (): Promise<TinyTrainingOptions> => {
    const shape =
      type === "q4_K" ? { embedding: 256, headSize: 64, feedForward: 256 } : { embedding: 32, feedForward: 64 };
    const path = await models.write({ seed: 5, embeddingScale: 0.25, type, ...shape });
    return { model: { path } };
  };
  const cases: Record<string, () => Promise<TinyTrainingOptions>> = {
    "an adapter over F32": async () => ({}),
    "all weights": async () => ({ model: { lora_rank: 0 } }),
    "an adapter over F16": quantized("f16"),
    "an adapter over BF16": quantized("bf16"),
    "an adapter over Q8_0": quantized("q8_0"),
    "an adapter over Q4_0": quantized("q4_0"),
    "an adapter over Q4_K": quantized("q4_K"),
    "a temperature of 0.7": async () => ({ rollout: { temperature: 0.7 } }),
    "a sequence-level loss": async () => ({
      actor: { policy_loss: { loss_mode: "gspo" }, loss_agg_mode: "seq-mean-token-mean" },
    }),
    "terms of entropy and KL": async () => ({
      actor: { use_kl_loss: true, kl_loss_coef: 0.1, entropy_coeff: 0.01 },
    }),
    "groups without advantage": async () => ({
      reward: 'return truth === "bb" ? 1 : [...text].filter((c) => c.charCodeAt(0) < 128).length;',
    }),
    "a measured update": async () => ({ actor: { update_kl_ratio: 1 } }),
  };

  // Elsewhere llama.cpp multiplies these weights, and the trainer's attention reaches its rounding of activations.
  const isPortable = process.env.CRIA_CPU_KERNEL === "portable" || process.arch !== "x64";
  const isExact = (name: string) => !isPortable || !/Q[48]/.test(name);

  it.each(Object.entries(cases))("are those of the update's own pass, bit for bit: %s", async (name, make) => {
    const options = await make();
    const [own, pass, compared] = [
      await takeSteps("auto", options),
      await takeSteps("separate", options),
      await takeSteps("compare", options),
    ];
    const measured = options.actor?.update_kl_ratio ? 2 : 0;
    expect([own.passes - measured, pass.passes - measured]).toEqual([0, 2]);
    expect(own.weights).toEqual(pass.weights);
    const told = ["training/old_log_prob_pass", "training/old_log_prob_diff_max"];
    expect(without(own.metrics, ...told)).toEqual(without(pass.metrics, ...told));
    expect(own.metrics.map(pick(told[0]!))).toEqual([0, 0]);
    expect(pass.metrics.map(pick(told[0]!))).toEqual([1, 1]);
    expect(pass.metrics.map(pick(told[1]!))).toEqual([undefined, undefined]);
    expect(compared.metrics.map(pick(told[1]!))).toEqual([0, 0]);
    expect(compared.weights).toEqual(pass.weights);
    // The sampler's, too.
    if (isExact(name)) expect(pass.metrics.map(pick("training/rollout_probs_diff_max"))).toEqual([0, 0]);
  });

  // The passes have other micro-batches, whose sums are rounded differently; only the update's own pass gives a ratio
  // of exactly 1.
  it.each<[string, TinyTrainingOptions]>([
    ["small micro-batches", { actor: { ppo_max_token_len: 64 } }],
    ["conversations that are taken twice", { algorithm: { use_pf_ppo: true } }],
  ])("make a ratio of exactly 1: %s", async (_, options) => {
    const [own, compared] = [await takeSteps("auto", options), await takeSteps("compare", options)];
    expect(own.passes).toBe(0);
    expect(own.metrics.map(pick("actor/ppo_kl"))).toEqual([0, 0]);
    for (const { "training/old_log_prob_diff_max": difference } of compared.metrics)
      expect(difference).toBeLessThan(1e-5);
    expect(own.metrics[0]!["actor/pg_loss"]).toBeCloseTo(compared.metrics[0]!["actor/pg_loss"]!, 6);
  });

  // Keys and values in F16 make the sampler's logprobs differ.
  it.each<[string, TinyTrainingOptions]>([
    ["cut off", { algorithm: { rollout_correction: { rollout_is: "token", rollout_is_threshold: 1.00001 } } }],
    [
      "with a lower limit",
      { algorithm: { rollout_correction: { rollout_is: "token", rollout_is_threshold: "0.99999_2" } } },
    ],
  ])("weigh the tokens of another sampler in the update, bit for bit: %s", async (_, { algorithm }) => {
    const options: TinyTrainingOptions = { algorithm, rollout: { kv_cache_dtype: "f16" } };
    const [own, pass, plain] = [
      await takeSteps("auto", options),
      await takeSteps("separate", options),
      await takeSteps("auto", { rollout: { kv_cache_dtype: "f16" } }),
    ];
    expect([own.passes, pass.passes]).toEqual([0, 2]);
    expect(own.weights).toEqual(pass.weights);
    expect(own.weights).not.toEqual(plain.weights);
    expect(without(own.metrics, "training/old_log_prob_pass")).toEqual(
      without(pass.metrics, "training/old_log_prob_pass"),
    );
    expect(own.metrics[0]!["rollout_corr/rollout_is_min"]).not.toBe(own.metrics[0]!["rollout_corr/rollout_is_max"]);
  });

  const needed: Record<string, [TinyTrainingOptions, passes: number]> = {
    "two epochs": [{ actor: { ppo_epochs: 2 } }, 2],
    "several mini-batches": [{ actor: { ppo_mini_batch_size: 2 } }, 2],
    "the KL in the reward": [{ algorithm: { use_kl_in_reward: true } }, 2],
    "an estimator that reads them": [{ algorithm: { adv_estimator: "optimal_token_baseline" } }, 2],
    "importance weights of sequences": [{ algorithm: { rollout_correction: { rollout_is: "sequence" } } }, 2],
    "importance weights with a mean of 1": [
      { algorithm: { rollout_correction: { rollout_is: "token", rollout_is_batch_normalize: true } } },
      2,
    ],
    rejections: [{ algorithm: { rollout_correction: { rollout_rs: "token_k1", rollout_rs_threshold: "0.5_2.0" } } }, 2],
    "a veto": [{ algorithm: { rollout_correction: { rollout_token_veto_threshold: 1e-4 } } }, 2],
    "a loss that ranks the tokens of a mini-batch": [{ actor: { policy_loss: { loss_mode: "clip_cov" } } }, 2],
    "the sampler's own word": [{ algorithm: { rollout_correction: { bypass_mode: true } } }, 0],
  };
  it.each(Object.entries(needed))(
    "are known before the update where they must be and the sampler's differ: %s",
    async (_, [options, passes]) => {
      const auto = await takeSteps("auto", { ...options, rollout: { kv_cache_dtype: "f16" } });
      expect(auto.passes).toBe(passes);
      expect(auto.metrics.map(pick("training/old_log_prob_pass"))).toEqual(passes > 0 ? [1, 1] : [0, 0]);
    },
  );

  /** Metrics that need the pass, or measure it. An update's entropies are those of the weights that it starts from. */
  const ofPass = ["training/old_log_prob_pass", "training/evaluated_ratio", "actor/entropy"];
  const isOfPass = (name: string) => ofPass.includes(name) || name.startsWith("training/rollout_");
  const withoutPass = ({ metrics }: { metrics: readonly Record<string, number>[] }) =>
    metrics.map((each) => Object.fromEntries(Object.entries(each).filter(([name]) => !isOfPass(name))));

  const several = Object.entries(needed).filter(([name]) => !/estimator|own word/.test(name));
  const twoUpdates = { actor: { ppo_mini_batch_size: 2 } };
  const sampled = [
    ...several.map(([name, [options]]) => [name, async () => options] as const),
    ...Object.entries(cases).map(([name, make]) => {
      const more = async () => {
        const options = await make();
        return { ...options, actor: { ...options.actor, ...twoUpdates.actor } };
      };
      return [`several updates of ${name}`, more] as const;
    }),
  ];
  it.each(sampled)("are the sampler's where a pass would repeat them, bit for bit: %s", async (name, make) => {
    const options = await make();
    const [auto, pass] = [await takeSteps("auto", options), await takeSteps("separate", options)];
    expect(auto.weights).toEqual(pass.weights);
    expect(withoutPass(auto)).toEqual(withoutPass(pass));
    const isLeftOut = isExact(name) ? 0 : 1;
    expect(auto.metrics.map(pick("training/old_log_prob_pass"))).toEqual([isLeftOut, isLeftOut]);
    if (!isExact(name)) return;
    expect(pass.passes - auto.passes).toBe(2);
    for (const metrics of auto.metrics) {
      // The first update's own pass is compared.
      expect(metrics["training/rollout_probs_diff_max"]).toBe(0);
      expect(metrics["training/rollout_probs_diff_valid"]).toBe(1);
      expect(metrics["actor/entropy"]).toBeGreaterThan(0);
    }
  });

  const other: Record<string, () => TinyTrainingOptions & Pick<StepInputs, "replay">> = {
    "steps sampled ahead": () => ({ trainer: { v1: { trainer_mode: "colocate_async" } } }),
    "groups learned from again": () => ({ replay: () => [] }),
    "tokens that a grammar confined": () => ({ rollout: { train_on_constrained_tokens: true } }),
    "a user's agent loop": () => {
      const registries = openRegistries();
      registries.agentLoops.register("own", {
        factory: ({ sequence, promptIds }) => ({
          run: async ({ seed }) => {
            const { tokenIds, logprobs } = await sequence.generate([], { maxTokens: 4, seed });
            const before = promptIds.length;
            return {
              tokenIds: [...promptIds, ...tokenIds],
              promptLength: before,
              responseMask: [...new Array(before).fill(0), ...new Array(tokenIds.length).fill(1)],
              rolloutLogprobs: [...new Array(before).fill(0), ...logprobs],
              numTurns: 2,
              metrics: {},
            };
          },
        }),
        traits: { prompt: true, tools: false, interactions: false, scores: false },
      });
      return { registries, row: { agent_name: "own" } };
    },
  };
  it.each(Object.entries(other))("are computed for %s", async (_, make) => {
    const { replay, ...options } = make();
    const auto = await takeSteps("auto", { ...options, ...twoUpdates }, replay ? { replay } : {});
    expect(auto.metrics.map(pick("training/old_log_prob_pass"))).toEqual([1, 1]);
  });

  it("are those of each branch of an agent's conversation", async () => {
    const user = (content: string): ChatMessage => ({ role: "user", content });
    const agent = async ({ row, session }: AgentContext<{ question: string }>) => {
      const ask = async (messages: ChatMessage[]) => (await session.complete({ messages, maxTokens: 4 })).message;
      const plan = await ask([user(row.question)]);
      const said = [];
      for (const next of ["x", "y"]) said.push(await ask([user(row.question), plan, user(next)]));
      return said.map(({ content }) => content).join("").length % 5;
    };
    const model = await models.write({ seed: 5, embeddingScale: 0.25 });
    const run = async (old_log_prob: Mode, branch_credit: "all_branches" | "nodes") => {
      const taken: Record<string, number>[] = [];
      await train({
        ...{
          model,
          agent,
          rows: ["a", "bb"].map((question) => ({ question })),
          name: `${old_log_prob}-${branch_credit}`,
        },
        folder: join(models.folder, "branches"),
        lora: { rank: 4 },
        report: (event) => void (event.type === "step" && taken.push(dropVarying(event.metrics))),
        ...{ steps: 2, batchSize: 2, n: 4, learningRate: 1e-2, seed: 1, threads: 1 },
        config: {
          data: { max_prompt_length: 512, max_response_length: 64 },
          actor_rollout_ref: { actor: { old_log_prob }, rollout: { max_num_seqs: 8, branch_credit } },
        },
      });
      return taken;
    };
    for (const credit of ["all_branches", "nodes"] as const) {
      const [own, pass, compared] = [
        await run("auto", credit),
        await run("separate", credit),
        await run("compare", credit),
      ];
      const told = ["training/old_log_prob_pass", "training/old_log_prob_diff_max"];
      expect(own.map(pick(told[0]!))).toEqual([0, 0]);
      expect(without(own, ...told)).toEqual(without(pass, ...told));
      expect(compared.map(pick(told[1]!))).toEqual([0, 0]);
    }
  });
});
