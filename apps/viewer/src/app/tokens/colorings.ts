import type { DumpLine } from "@cria/records";
import { formatNumber } from "../logic/format.js";

export type ColoringId =
  | "rollout"
  | "old"
  | "ref"
  | "now"
  | "difference"
  | "teacher"
  | "entropy"
  | "advantage"
  | "ratio"
  | "mask"
  | "reward";

/** The range of ratios that the update does not clip. */
export interface ClipRegion {
  low: number;
  high: number;
}

/** A value by which tokens are coloured, and its explanation. */
export interface Coloring {
  id: ColoringId;
  title: string;
  /** Label of a button. */
  short: string;
  key: string;
  /** Null: the dump lacks them. */
  values: readonly (number | null)[] | null;
  /** Source of the value, or the way to get it. */
  about: string;
  /** A class of styles/episode.css; "" for none. */
  look: (value: number, token: number) => string;
  /** The formula with the numbers of a token. */
  explain: (token: number) => string;
  legend: readonly (readonly [look: string, means: string])[];
}

interface Given {
  line: DumpLine;
  clip: ClipRegion;
  /** Logprobs by the newest adapter, once they were requested. */
  now: readonly number[] | null;
}

const FULL = "Not in this dump: trainer.rollout_data_detail: full writes it.";
const NOT_COMPUTED = "This run did not compute it.";
const SURPRISE = [
  ["heat-0", "certain"],
  ["heat-3", "p = 50%"],
  ["heat-8", "p < 1%"],
] as const;

/** All colourings of a conversation; those without values give the reason. */
export function listColorings(given: Given): Coloring[] {
  const { line, clip, now } = given;
  const sampled = (values: readonly (number | null)[] | undefined | null) =>
    values && values.length === line.token_ids.length
      ? values.map((value, i) => (line.response_mask[i] ? value : null))
      : null;
  const rollout = sampled(line.rollout_logprobs);
  const old = sampled(line.old_logprobs);
  const reference = sampled(line.ref_logprobs);
  const teacher = sampled(line.teacher_logprobs);
  const latest = sampled(now);
  const entropy = sampled(line.entropy);
  const advantages =
    sampled(line.advantages) ?? (line.advantage === null ? null : sampled(line.token_ids.map(() => line.advantage)));
  const ratio =
    latest && old
      ? combine(latest, old)
      : old && rollout
        ? combine(old, rollout)
        : latest && rollout
          ? combine(latest, rollout)
          : null;
  const [top, bottom] = latest ? (["now", old ? "old" : "rollout"] as const) : (["old", "rollout"] as const);
  const ratioParts = latest ? [latest, old ?? rollout] : [old, rollout];
  const n = formatNumber;
  const probability = (name: string, values: readonly (number | null)[] | null) => (t: number) =>
    `p = exp(${name}) = exp(${n(values?.[t])}) = ${percent(Math.exp(values?.[t] ?? 0))}`;
  const logprob = (
    id: ColoringId,
    key: string,
    short: string,
    values: Coloring["values"],
    about: string,
  ): Coloring => ({
    id,
    key,
    title: `Logprob: ${short}`,
    short,
    values,
    about,
    look: (value) => heat(-value / 4.6),
    explain: probability(id, values),
    legend: SURPRISE,
  });
  const advice = teacher && (old ?? rollout) ? teacher.map((value, i) => minus(value, (old ?? rollout)![i]!)) : null;
  const difference = old && rollout ? old.map((value, i) => minus(value, rollout[i]!)) : null;
  return [
    logprob("rollout", "1", "rollout", rollout, "By the sampler, as it was sampled."),
    logprob(
      "old",
      "2",
      "old",
      old,
      old ? "Recomputed by the trainer before the update." : line.old_logprobs === null ? NOT_COMPUTED : FULL,
    ),
    logprob(
      "ref",
      "3",
      "reference",
      reference,
      reference ? "Without the adapter." : line.ref_logprobs === null ? NOT_COMPUTED : FULL,
    ),
    logprob("now", "4", "now", latest, latest ? "By the run's newest adapter." : "Asks the model."),
    {
      id: "difference",
      key: "5",
      title: "Trainer − sampler",
      short: "difference",
      values: difference,
      about: difference ? "Old less rollout: 0 where trainer and sampler agree." : FULL,
      look: (value) => (value < 0 ? cool(-value / 0.2) : heat(value / 0.2)),
      explain: (t) => `old − rollout = ${n(old?.[t])} − ${n(rollout?.[t])} = ${n(difference?.[t])}`,
      legend: [
        ["cool-6", "trainer lower"],
        ["heat-0", "equal"],
        ["heat-6", "trainer higher (0.2 and more)"],
      ],
    },
    ...(advice
      ? [
          {
            id: "teacher",
            key: "t",
            title: "Teacher − policy",
            short: "teacher",
            values: advice,
            about: "What the teacher would rather say, and rather not.",
            look: (value) => (value < 0 ? `bad-${level(-value / 3)}` : `good-${level(value / 3)}`),
            explain: (t) =>
              `teacher − policy = ${n(teacher?.[t])} − ${n((old ?? rollout)?.[t])} = ${n(advice[t])}: the teacher finds this token ${percent(Math.exp(teacher?.[t] ?? 0))} likely`,
            legend: [
              ["bad-6", "less likely for the teacher"],
              ["heat-0", "equal"],
              ["good-6", "likelier"],
            ],
          } satisfies Coloring,
        ]
      : []),
    {
      id: "entropy",
      key: "6",
      title: "Entropy",
      short: "entropy",
      values: entropy,
      about: entropy
        ? "Of the distribution that the token was drawn from, in nats."
        : line.entropy === null
          ? NOT_COMPUTED
          : FULL,
      look: (value) => heat(value / 3),
      explain: (t) => `entropy = ${n(entropy?.[t])} nats: as open as ${n(Math.exp(entropy?.[t] ?? 0))} equal choices`,
      legend: [
        ["heat-0", "0"],
        ["heat-4", "1.5"],
        ["heat-8", "3 nats and more"],
      ],
    },
    {
      id: "advantage",
      key: "7",
      title: "Advantage",
      short: "advantage",
      values: advantages,
      about: advantages
        ? line.advantages
          ? "Of each token."
          : "The conversation's mean: the dump holds no value a token."
        : "Nothing was learned from this conversation.",
      look: (value) => (value < 0 ? `bad-${level(-value / 2)}` : `good-${level(value / 2)}`),
      explain: (t) => {
        const value = advantages?.[t] ?? 0;
        const effect = value > 0 ? "up" : value < 0 ? "down" : "nowhere";
        return `advantage = ${n(value)}: the update pushes this token's probability ${effect}`;
      },
      legend: [
        ["bad-6", "pushed down"],
        ["heat-0", "0"],
        ["good-6", "pushed up"],
      ],
    },
    {
      id: "ratio",
      key: "8",
      title: "Ratio",
      short: "ratio",
      values: ratio,
      about: ratio ? `exp(${top} − ${bottom}), clipped outside [${n(clip.low)}, ${n(clip.high)}].` : FULL,
      look: (value) => {
        const shade = value < 1 ? cool((1 - value) / (1 - clip.low)) : heat((value - 1) / (clip.high - 1));
        return value < clip.low || value > clip.high ? `${shade} clipped` : shade;
      },
      explain: (t) => {
        const value = ratio?.[t] ?? 1;
        const where = value < clip.low || value > clip.high ? "outside" : "inside";
        return `ratio = exp(${top} − ${bottom}) = exp(${n(ratioParts[0]?.[t])} − ${n(ratioParts[1]?.[t])}) = ${n(value)}, ${where} [${n(clip.low)}, ${n(clip.high)}]`;
      },
      legend: [
        ["cool-6", "less likely"],
        ["heat-6", "likelier"],
        ["heat-8 clipped", "clipped"],
      ],
    },
    {
      id: "mask",
      key: "9",
      title: "Mask",
      short: "mask",
      values: line.response_mask,
      about: "What the policy sampled and is trained on.",
      look: (value) => (value === 1 ? "mask-1" : ""),
      explain: (t) =>
        line.response_mask[t] === 1
          ? "mask = 1: sampled by the policy and trained on"
          : "mask = 0: prompt, tool, user or template; not trained on",
      legend: [
        ["mask-1", "trained on"],
        ["heat-0", "given"],
      ],
    },
    {
      id: "reward",
      key: "0",
      title: "Placed reward",
      short: "reward",
      values: line.token_level_rewards,
      about: "Where the reward lies.",
      look: (value) => (value === 0 ? "" : value < 0 ? `bad-${level(-value)}` : `good-${level(value)}`),
      explain: (t) =>
        `reward at this token = ${n(line.token_level_rewards[t])}; of the whole conversation ${n(line.reward)}`,
      legend: [
        ["bad-6", "below 0"],
        ["good-6", "above 0"],
      ],
    },
  ];
}

/** The clip region of a run's config; PPO's usual one without a setting. */
export function readClip(config: Record<string, unknown> | null | undefined): ClipRegion {
  const actor = dig(dig(config, "actor_rollout_ref"), "actor") as Record<string, unknown> | undefined;
  const both = typeof actor?.["clip_ratio"] === "number" ? actor["clip_ratio"] : 0.2;
  const low = typeof actor?.["clip_ratio_low"] === "number" ? actor["clip_ratio_low"] : both;
  const high = typeof actor?.["clip_ratio_high"] === "number" ? actor["clip_ratio_high"] : both;
  return { low: 1 - low, high: 1 + high };
}

function dig(value: unknown, key: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[key] : undefined;
}

function combine(top: readonly (number | null)[], bottom: readonly (number | null)[]): (number | null)[] {
  return top.map((value, i) => {
    const difference = minus(value, bottom[i]!);
    return difference === null ? null : Math.exp(difference);
  });
}

function minus(a: number | null, b: number | null): number | null {
  return a === null || b === null ? null : a - b;
}

function level(share: number): number {
  return Math.max(0, Math.min(8, Math.ceil(share * 8)));
}

const heat = (share: number) => `heat-${level(share)}`;
const cool = (share: number) => `cool-${level(share)}`;

function percent(p: number): string {
  return `${(p * 100).toPrecision(4)}%`;
}
