import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { losses } from "@cria/algorithms";
import { TinyModels } from "@cria/engine/testing";
import { holdConversation } from "@cria/rollout/internal";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { advantages } from "../step/advantages.js";
import { Groups } from "../step/groups.js";
import { rollOut } from "../step/roll-out.js";
import { defineTask } from "../task/task.js";
import { makeBatch } from "./batch.js";
import { loadPolicy } from "./load-policy.js";
import type { Policy } from "./policy.js";
import { loadTeacher } from "./teacher.js";
import { computePolicyGradient, type UpdateOptions } from "./update-policy.js";

const models = new TinyModels();
let model: string;
let policy: Policy;
const common = { contextSize: 96, maxSequences: 8, seed: 3, threads: 1 };
beforeAll(async () => {
  model = await models.write({ seed: 5, embeddingScale: 0.25 });
  policy = await loadPolicy(model, { ...common, lora: { rank: 4, alpha: 8 } });
});
afterAll(async () => {
  await policy.dispose();
  await models.cleanUp();
});

const task = defineTask({
  rows: ["a", "bb"].map((question) => ({ question })),
  reward: ({ text }) => [...text].filter((c) => c < "\x80").length / Math.max(1, text.length),
  maxPromptLength: 48,
  maxResponseLength: 8,
});

/** Makes one update that changes the generated text. */
async function teach(taught: Policy, more: Partial<UpdateOptions> = {}): Promise<void> {
  const groups = await rollOut(taught, task, await task.load(), { n: 4 });
  await taught.train(groups.toBatch(advantages.grpo(groups)), losses.ppo(), { learningRate: 1e-2, ...more });
}

const noGroups = new Groups({ rows: [], trajectories: [], temperature: 1, responseLength: 8 });

/** The error of a promise, or of a call; null: there is none. */
async function failureOf(work: PromiseLike<unknown> | (() => unknown)): Promise<unknown> {
  try {
    await (typeof work === "function" ? work() : work);
    return null;
  } catch (error) {
    return error;
  }
}
async function collect(pieces: AsyncIterable<string>): Promise<string[]> {
  const collected: string[] = [];
  for await (const piece of pieces) collected.push(piece);
  return collected;
}

describe("generate", () => {
  it("is awaited whole, and iterated in pieces, also late and by several", async () => {
    const generation = policy.generate("a", { maxTokens: 12 });
    const [text, pieces, again] = await Promise.all([generation, collect(generation), collect(generation)]);
    expect(text.length).toBeGreaterThan(0);
    expect(pieces.length).toBeGreaterThan(1);
    expect(pieces.join("")).toBe(text);
    expect(again).toEqual(pieces);
    expect(await collect(generation)).toEqual(pieces);
    expect(await policy.generate([{ role: "user", content: "a" }], { maxTokens: 12 })).toBe(text);
  });

  it("samples by seed", async () => {
    const draw = (seed?: number) => policy.generate("a", { maxTokens: 12, temperature: 1, seed });
    expect(await draw(1)).toBe(await draw(1));
    expect(await draw(1)).not.toBe(await draw(2));
    expect(await draw()).toBe(await draw(common.seed));
  });

  it("goes to the end of the context, and refuses a prompt that fills it", async () => {
    const [all, more] = await Promise.all([policy.generate("a"), policy.generate("a", { maxTokens: 10_000 })]);
    expect(more).toBe(all);
    const generation = policy.generate("x".repeat(200));
    const error = await failureOf(generation);
    expect(error).toMatchObject({
      code: "config/context-too-small",
      expected: expect.stringContaining("96 tokens"),
      remedy: expect.stringContaining("contextSize"),
    });
    expect(await failureOf(collect(generation))).toBe(error);
  });

  it("ends where its iteration is left, and with the signal's reason when that aborts", async () => {
    // The text is long enough that the abort always comes in time.
    const path = await models.write({ seed: 5, embeddingScale: 0.25, contextLength: 8192 });
    const long = await loadPolicy(path, { ...common, contextSize: 8192, maxSequences: 1 });
    const left = long.generate("a");
    let first = "";
    for await (const piece of left) {
      first = piece;
      break;
    }
    const text = await left;
    expect(text.startsWith(first)).toBe(true);
    expect(text.length).toBeLessThan(4000);
    const controller = new AbortController();
    const aborted = long.generate("a", { signal: controller.signal });
    const reason = new Error("enough");
    for await (const _ of aborted) {
      controller.abort(reason);
      break;
    }
    expect(await failureOf(aborted)).toBe(reason);
    expect(await failureOf(long.generate("a", { signal: AbortSignal.abort(reason) }))).toBe(reason);
    await long.dispose();
  });
});

describe("a trained policy", () => {
  it("is saved as an adapter, and exported as a whole model, which give the same answers", async () => {
    const trained = await loadPolicy(model, { ...common, lora: { rank: 4, alpha: 8 } });
    const before = await trained.generate("a", { maxTokens: 12 });
    for (let i = 0; i < 3; i++) await teach(trained);
    expect(trained.updates).toBe(3);
    const after = await trained.generate("a", { maxTokens: 12 });
    expect(after).not.toBe(before);
    const [adapter, merged] = [join(models.folder, "saved.gguf"), join(models.folder, "merged.gguf")];
    await trained.save(adapter);
    await trained.export(merged);
    await trained.dispose();
    expect(readdirSync(models.folder).filter((name) => name.endsWith(".weights"))).toEqual([]);
    const again = await loadPolicy(model, { ...common, lora: { path: adapter } });
    expect(await again.generate("a", { maxTokens: 12 })).toBe(after);
    await again.dispose();
    const whole = await loadPolicy(merged, common);
    expect(await whole.generate("a", { maxTokens: 12 })).toBe(after);
    await whole.dispose();
  });

  it.each([{ lora: { rank: 4, alpha: 8 } }, { lora: null }])(
    "is the same wherever its gradients were computed: $lora",
    async (kind) => {
      const [alone, together, worker] = await Promise.all(
        [0, 1, 2].map(() => loadPolicy(model, { ...common, ...kind })),
      );
      const names = { alone: join(models.folder, "alone.gguf"), together: join(models.folder, "together.gguf") };
      const small = { microBatchTokens: 64 };
      await teach(alone!, small);
      await alone!.save(names.alone);
      let count = 0;
      await teach(together!, {
        ...small,
        // Only plain values are sent to a worker.
        compute: (work, here) =>
          count++ % 2 === 0 ? computePolicyGradient(worker!.engine, structuredClone(work)) : here(),
      });
      await together!.save(names.together);
      expect(count).toBeGreaterThan(1);
      expect(readFileSync(names.together).equals(readFileSync(names.alone))).toBe(true);
      for (const policy of [alone!, together!, worker!]) await policy.dispose();
    },
  );

  it("is exported with full training too; an unknown type leaves nothing behind", async () => {
    const full = await loadPolicy(model, { ...common, lora: null });
    await teach(full);
    const file = join(models.folder, "full.gguf");
    await full.export(file);
    const again = await loadPolicy(file, common);
    expect(await again.generate("a", { maxTokens: 12 })).toBe(await full.generate("a", { maxTokens: 12 }));
    await again.dispose();
    const wrong = join(models.folder, "wrong.gguf");
    expect(String(await failureOf(full.export(wrong, { quantize: "q9_9" })))).toMatch(/q9_9/);
    expect([wrong, `${wrong}.weights`].map((name) => existsSync(name))).toEqual([false, false]);
    await full.dispose();
  });
});

it("conversations held by another policy of the same weights have the same tokens and logprobs", async () => {
  const worker = await loadPolicy(model, { ...common, lora: { rank: 4, alpha: 8 } });
  const rows = await task.load();
  const alone = await rollOut(policy, task, rows, { n: 3, step: 7 });
  let count = 0;
  const together = await rollOut(policy, task, rows, {
    n: 3,
    step: 7,
    converse: async (work, here) => {
      if (count++ % 3 === 2) return here();
      return holdConversation(worker.engine, structuredClone(work), {
        ...(await task.open(worker)),
        tokenizer: worker.tokenizer,
      });
    },
  });
  expect(count).toBe(6);
  const describeAll = (groups: typeof alone) =>
    groups.trajectories.map(({ tokenIds, rolloutLogprobs, responseMask, reward }) => ({
      tokenIds,
      rolloutLogprobs,
      responseMask,
      reward,
    }));
  expect(describeAll(together)).toEqual(describeAll(alone));
  await worker.dispose();
});

describe("the reference", () => {
  const sequences = [{ tokenIds: [1, 2, 3, 4], from: 1 }];

  it("is the policy before training: the adapter off, or a copy that was asked for", async () => {
    for (const options of [{ lora: { rank: 4, alpha: 8 } }, { lora: null, reference: true }]) {
      const trained = await loadPolicy(model, { ...common, ...options });
      const [fresh] = await trained.score(sequences, { reference: true });
      expect([...fresh!.refLogprobs!].map((x) => x.toFixed(4))).toEqual(
        [...fresh!.oldLogprobs].map((x) => x.toFixed(4)),
      );
      await teach(trained);
      const [taught] = await trained.score(sequences, { reference: true });
      expect([...taught!.refLogprobs!]).toEqual([...fresh!.refLogprobs!]);
      expect([...taught!.oldLogprobs]).not.toEqual([...fresh!.oldLogprobs]);
      await trained.dispose();
      await trained.dispose();
    }
  });

  it("is not there with full training unless it is asked for", async () => {
    const full = await loadPolicy(model, { ...common, lora: null });
    expect(await failureOf(full.score(sequences, { reference: true }))).toMatchObject({ code: "config/no-reference" });
    expect(await full.score([], { reference: true })).toEqual([]);
    await full.dispose();
  });
});

it("a policy that was disposed says so", async () => {
  const gone = await loadPolicy(model, common);
  await gone.dispose();
  await gone.dispose();
  expect(await failureOf(gone.generate("a"))).toMatchObject({ code: expect.stringMatching(/\/disposed$/) });
});

it("an error of loading names the file", async () => {
  expect(String(await failureOf(loadPolicy(join(models.folder, "nowhere.gguf"))))).toContain("nowhere.gguf");
  expect(String(await failureOf(loadPolicy(model, { lora: { targets: ["q_prj"] } })))).toContain("q_prj");
});

/** Options that no type has, as programs in JavaScript give them. */
const loose = (options: object) => options as never;

/** Calls of an own loop, each with options of which one is misspelt; the call's name in errors, and the right name. */
const misspelt: Record<string, [call: () => unknown, option: string]> = {
  "loadPolicy: contextsize": [() => loadPolicy(model, loose({ contextsize: 100 })), "contextSize"],
  "rollOut: temprature": [
    async () => rollOut(policy, task, await task.load(), loose({ temprature: 0 })),
    "temperature",
  ],
  "policy.train: learningrate": [() => policy.train(loose({}), loose({}), loose({ learningrate: 1 })), "learningRate"],
  "policy.generate: maxTokns": [() => policy.generate("?", loose({ maxTokns: 1 })), "maxTokens"],
  "policy.score: refrence": [() => policy.score([], loose({ refrence: true })), "reference"],
  "policy.keepVersion: update": [() => policy.keepVersion(loose({ update: 1 })), "updates"],
  "policy.export: quantise": [() => policy.export("none.gguf", loose({ quantise: "q8_0" })), "quantize"],
  "loadTeacher: sample": [() => loadTeacher(model, policy, loose({ sample: true })), "samples"],
  "task.batches: sed": [() => task.batches(1, loose({ sed: 1 })).next(), "seed"],
  "groups.toBatch: lossWeight": [
    () => noGroups.toBatch({ indices: [], advantages: [], metrics: {} }, loose({ lossWeight: () => 1 })),
    "lossWeights",
  ],
  "makeBatch: temprature": [() => makeBatch([], loose({ temprature: 1 })), "temperature"],
  "advantages.of: gama": [() => advantages.of("grpo", noGroups, loose({ gama: 1 })), "gamma"],
  ...Object.fromEntries(
    Object.entries(advantages)
      .filter(([name]) => name !== "of")
      .map(([name, by]) => [
        `advantages.${name}: normaliseByStd`,
        [() => (by as typeof advantages.grpo)(noGroups, loose({ normaliseByStd: false })), "normalizeByStd"],
      ]),
  ),
  ...Object.fromEntries(
    Object.entries(losses).flatMap(([name, make]): [string, [() => unknown, string]][] => {
      const given = (options: object) => (name === "custom" ? [() => [], options] : [options]);
      const call = (options: object) => () => (make as (...given: unknown[]) => unknown)(...given(options));
      return [
        [`losses.${name}: entrpy`, [call({ entrpy: 0.01 }), "entropy"]],
        [`losses.${name}: kl.coeficient`, [call({ kl: { coeficient: 1 } }), "kl.coefficient"]],
        [`losses.${name}: teacher.topK`, [call({ teacher: { topK: 4 } }), "teacher.topk"]],
      ];
    }),
  ),
  "losses.ppo: clp": [() => losses.ppo(loose({ clp: 0.1 })), "clip"],
  "losses.ppo: clip.lo": [() => losses.ppo(loose({ clip: { lo: 0.1, high: 0.2 } })), "clip.low"],
  "losses.ppo: dualclip": [() => losses.ppo(loose({ dualclip: 5 })), "dualClip"],
  "losses.sapo: taupos": [() => losses.sapo(loose({ taupos: 1.1 })), "tauPos"],
  "losses.clipCov: uper": [() => losses.clipCov(loose({ uper: 1 })), "upper"],
  "losses.klCov: ration": [() => losses.klCov(loose({ ration: 1 })), "ratio"],
  "losses.dppo: divergance": [() => losses.dppo(loose({ divergance: "kl" })), "divergence"],
  "losses.dro: betta": [() => losses.dro(loose({ betta: 1 })), "beta"],
  "losses.custom: clp": [
    () =>
      losses.custom(
        loose(() => []),
        loose({ clp: 0.1 }),
      ),
    "clip",
  ],
};

describe("misspelt options of an own loop are refused", () => {
  it.each(Object.entries(misspelt))("%s", async (subject, [call, option]) => {
    const expected = expect.stringContaining(`"${option}"`);
    expect(await failureOf(call)).toMatchObject({ code: "config/unknown-key", subject, expected });
  });

  it("and values of a wrong type", async () => {
    const code = "config/bad-value";
    const half: [string, () => unknown][] = [
      ["losses.ppo: clip", () => losses.ppo(loose({ clip: { low: 0.1 } }))],
      ["losses.ppo: kl", () => losses.ppo(loose({ kl: { type: "k3" } }))],
    ];
    for (const [subject, call] of half) expect(await failureOf(call)).toMatchObject({ code, subject });
    for (const clip of ["0.1", null])
      expect(await failureOf(() => losses.ppo(loose({ clip })))).toMatchObject({ code, subject: "losses.ppo: clip" });
    expect(await failureOf(() => losses.dppo(loose({ divergence: "js" })))).toMatchObject({ code });
    expect(await failureOf(() => advantages.grpo(noGroups, loose({ gamma: "1" })))).toMatchObject({
      code,
      subject: "advantages.grpo: gamma",
    });
  });
});
