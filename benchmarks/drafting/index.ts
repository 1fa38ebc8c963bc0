/**
 * Drafting: siblings of a group and the last epoch's answers propose tokens, and one evaluation checks them. The peer is
 * ourselves with `drafting: false`; both sample the same tokens, which is checked first. Groups run one after the other,
 * each side in turn; the second pass asks every problem again with other seeds, as an epoch does.
 */
import { join } from "node:path";
import { type LlamaModel, type LoadModelOptions, loadModel } from "@cria/engine";
import { embeddedPolicyPath } from "@cria/models";
import type { BenchmarkOptions } from "../benchmark.js";
import { median } from "../measure.js";
import { getModelFile } from "../models/index.js";
import { findRealModel, writeRealModel } from "../real-model.js";
import type { Measured, Row } from "../row.js";
import { THREADS } from "../settings.js";
import { prepareToolChoice } from "../tool-choice.js";
import {
  type Group,
  listCalculatorProblems,
  listGsm8kProblems,
  listRandomProblems,
  listToolChoiceProblems,
  type Problem,
  sampleGroup,
} from "./conversations.js";

interface Case {
  title: string;
  getModel: () => Promise<Pick<LoadModelOptions, "path" | "lora">>;
  listProblems: (model: LlamaModel) => Problem[] | Promise<Problem[]>;
  samples: number;
  /** Problems of a round, and rounds that are counted, each with other problems as far as there are any. */
  problems: number;
  rounds: number;
  maxTokens: number;
  /** Least ratio of tokens per second in the second pass; null: none. */
  least: number | null;
}

const SAME = "cria-tiny F32, calculator, 1,000 conversations in groups of 8";

function listCases(log: (text: string) => void): Case[] {
  const calculator = (samples: number, problems: number, least: number | null): Case => ({
    title: `cria-tiny F32, calculator, ${samples} together`,
    getModel: async () => ({ path: embeddedPolicyPath }),
    listProblems: listCalculatorProblems,
    ...{ samples, problems, rounds: 5, maxTokens: 48, least },
  });
  const published = (samples: number, problems: number, rounds: number, least: number | null): Case => ({
    title: `SmolLM2-135M-Instruct Q8_0, GSM8K, ${samples} together`,
    getModel: async () => ({ path: await findPublished() }),
    listProblems: listGsm8kProblems,
    ...{ samples, problems, rounds, maxTokens: 96, least },
  });
  const taught = (samples: number, problems: number, least: number | null): Case => ({
    title: `SmolLM2-135M-Instruct Q8_0 after demonstrations of tool choice, ${samples} together`,
    getModel: async () => ({
      path: await findPublished(),
      lora: { path: join(await prepareToolChoice(), "sft.gguf") },
    }),
    listProblems: async (model) => listToolChoiceProblems(model, join(await prepareToolChoice(), "train.jsonl")),
    ...{ samples, problems, rounds: 5, maxTokens: 48, least },
  });
  const random = (samples: number, problems: number): Case => ({
    title: `smollm2-135m Q8_0 with random weights, ${samples} together: nothing matches`,
    getModel: async () => ({ path: await getModelFile("smollm2-135m", "Q8_0", log) }),
    listProblems: (model) => listRandomProblems(model, 100),
    ...{ samples, problems, rounds: 7, maxTokens: 48, least: 0.98 },
  });
  return [
    ...[calculator(1, 40, null), calculator(4, 20, null), calculator(16, 10, 1.3)],
    ...[published(1, 2, 5, null), published(16, 1, 5, 1.3)],
    ...[taught(4, 4, null), taught(16, 2, 1.3), taught(32, 1, null)],
    ...[random(1, 12), random(16, 2)],
  ];
}

async function findPublished(): Promise<string> {
  const { missingModel } = await findRealModel();
  if (missingModel) throw new Error(missingModel);
  return writeRealModel("Q8_0");
}

export async function run({ includes, log }: BenchmarkOptions): Promise<Measured> {
  const rows: Row[] = [];
  if (includes(SAME)) rows.push(await compareConversations());
  for (const one of listCases(log)) if (includes(one.title)) rows.push(...(await measure(one, log)));
  return { rows };
}

/** The same model without drafts and with them. */
async function loadBoth(options: LoadModelOptions, drafting: true | "always" = true) {
  const load = (drafting: boolean | "always") =>
    loadModel({ contextSize: 512, threads: THREADS, drafting, ...options });
  return { plain: await load(false), drafting: await load(drafting) };
}

const bits = ({ turns }: Group) =>
  turns.map((each) => JSON.stringify(each.map((t) => [t.text, [...t.tokenIds], [...t.logprobs]])));

async function compareConversations(): Promise<Row> {
  const { plain, drafting } = await loadBoth({ path: embeddedPolicyPath, maxSequences: 8 }, "always");
  let different = 0;
  try {
    const problems = listCalculatorProblems(plain);
    for (let g = 0; g < 125; g++) {
      // Every problem is asked twice.
      const talk = { samples: 8, maxTokens: 48, seed: g };
      const [one, other] = [
        bits(await sampleGroup(plain, problems[g % 63]!, talk)),
        bits(await sampleGroup(drafting, problems[g % 63]!, talk)),
      ];
      different += one.filter((text, i) => text !== other[i]).length;
    }
    if (drafting.schedulerStats().acceptedDraftTokens === 0) throw new Error(`${SAME}: no draft was accepted`);
  } finally {
    await Promise.all([plain.dispose(), drafting.dispose()]);
  }
  return {
    case: SAME,
    metric: "conversations that differ",
    ours: different,
    peers: {},
    target: "0",
    met: different === 0,
  };
}

const PASSES = ["first pass", "second pass"] as const;

/** A model's work in a pass: tokens per second of each round, and tokens of all rounds. */
interface Taken {
  speeds: number[];
  sampled: number;
  accepted: number;
}

async function measure(one: Case, log: (text: string) => void): Promise<Row[]> {
  const models = await loadBoth({ ...(await one.getModel()), maxSequences: one.samples });
  const make = (): Taken => ({ speeds: [], sampled: 0, accepted: 0 });
  const taken = {
    plain: { "first pass": make(), "second pass": make() },
    drafting: { "first pass": make(), "second pass": make() },
  };
  try {
    const problems = await one.listProblems(models.plain);
    // The first round is not counted: threads are chosen, and rows' times measured.
    for (let round = 0; round <= one.rounds; round++) {
      const chosen = Array.from(
        { length: one.problems },
        (_, i) => problems[(round * one.problems + i) % problems.length]!,
      );
      for (const [p, pass] of PASSES.entries()) {
        const sides = ["plain", "drafting"] as const;
        for (const side of round % 2 ? sides : sides.toReversed()) {
          const model = models[side];
          const before = model.schedulerStats();
          const speed = await time(model, chosen, one, 100_000 * p + 1000 * round);
          const after = model.schedulerStats();
          const count = (key: "draftTokens" | "acceptedDraftTokens" | "decodeTokens") => after[key] - before[key];
          log(
            `${one.title}, ${pass}, ${side}: ${speed.toFixed(0)} tokens per second, ${count("decodeTokens")} in all; ` +
              `${count("draftTokens")} drafted, ${count("acceptedDraftTokens")} accepted`,
          );
          if (round === 0) continue;
          taken[side][pass].speeds.push(speed);
          taken[side][pass].sampled += count("decodeTokens");
          taken[side][pass].accepted += count("acceptedDraftTokens");
        }
      }
    }
  } finally {
    await Promise.all(Object.values(models).map((model) => model.dispose()));
  }
  return PASSES.flatMap((pass): Row[] => {
    const { speeds, accepted, sampled } = taken.drafting[pass];
    const plain = taken.plain[pass].speeds;
    const ratio = median(speeds.map((speed, round) => speed / plain[round]!));
    // A case in which no draft can match has one bound, for both passes.
    const least = one.least !== null && (one.least < 1 || pass === "second pass") ? one.least : null;
    return [
      {
        case: one.title,
        metric: `sampled tokens per second, ${pass}`,
        ours: median(speeds),
        peers: { "drafting: false": median(plain) },
        target:
          least === null
            ? null
            : `at least ${least} times drafting: false (median of the rounds' ratios: ${ratio.toFixed(2)})`,
        met: least === null ? null : ratio >= least,
      },
      {
        case: one.title,
        metric: `% of the sampled tokens that were drafted, ${pass}`,
        ours: (100 * accepted) / sampled,
        peers: {},
        target: null,
        met: null,
      },
    ];
  });
}

async function time(model: LlamaModel, problems: readonly Problem[], { samples, maxTokens }: Case, seed: number) {
  const started = performance.now();
  let sampled = 0;
  for (const [i, problem] of problems.entries())
    sampled += (await sampleGroup(model, problem, { samples, maxTokens, seed: seed + i })).sampled;
  return (1000 * sampled) / (performance.now() - started);
}
