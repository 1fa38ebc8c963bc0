import { basename } from "node:path";
import type { PolicyEngine, Trajectory, TrajectoryImage } from "@cria/core";
import type { DatasetRow } from "@cria/rollout";
import { countPromptMessages, hideVectors, listToolSchemas, toPlainData } from "@cria/rollout/internal";
import type { BaseTool } from "@cria/tools";
import { describeCall } from "./describe-call.js";
import { describeJudgement, describeStepRewards } from "./describe-judgement.js";
import { DUMP_FORMAT_VERSION, type DumpImage, type DumpLine, type DumpSpan, type DumpTurn } from "./dump-line.js";
import { TokenTexts } from "./token-texts.js";

/** Values that training computed per token; null if not computed. Arrays are as long as `tokenIds`. */
export interface TokenDetails {
  oldLogprobs: ArrayLike<number> | null;
  refLogprobs: ArrayLike<number> | null;
  /** Left out, or null: there is no teacher. */
  teacherLogprobs?: ArrayLike<number> | null;
  advantages: ArrayLike<number> | null;
  /** In nats. */
  entropy: ArrayLike<number> | null;
}

export interface DumpContext {
  /** Training step; null: no training. */
  step: number | null;
  /** Rows, including those of the trajectories. */
  rows: readonly DatasetRow[];
  tools: ReadonlyMap<string, BaseTool>;
  /** Engine of the tokens. */
  engine: Pick<PolicyEngine, "detokenize" | "info">;
  /** Mean advantage of each trajectory; null if nothing was learned from it. Default: null for all. */
  advantages?: readonly (number | null)[];
  /** Training values of each trajectory; default: left out of the lines. */
  tokenDetails?: readonly TokenDetails[];
  /** Write the times of states and turns, which differ in every run. Default false. */
  times?: boolean;
}

/** Converts trajectories to the lines of one dump file. */
export function describeTrajectories(trajectories: readonly Trajectory[], context: DumpContext): DumpLine[] {
  const rows = new Map(context.rows.map((row) => [row.uid, row]));
  const described = new Set<string>();
  const texts = new TokenTexts((tokenIds) => context.engine.detokenize(tokenIds));
  return trajectories.map((trajectory, i) => {
    const row = rows.get(trajectory.uid);
    const schemas = trajectory.toolSchemas ?? (row === undefined ? [] : listToolSchemas(context.tools, row));
    const fresh = schemas.filter(({ function: { name } }) => !described.has(name));
    for (const schema of fresh) described.add(schema.function.name);
    return {
      ...describeRecord(trajectory, context, texts),
      ...describeDetails(context.tokenDetails?.[i]),
      // Without its folder, so that the same training on a copy of the data gives the same dump.
      place: row === undefined ? null : basename(row.place),
      ground_truth: toJson(row?.groundTruth),
      prompt_messages: (row && countPromptMessages(row, trajectory.messages)) || countPrompt(trajectory.messages),
      tools: schemas.map((schema) => schema.function.name),
      tool_schemas: fresh,
      advantage: context.advantages?.[i] ?? null,
    };
  });
}

/** The part of a line that comes from the trajectory. */
function describeRecord(
  trajectory: Trajectory,
  { step, engine, times = false }: DumpContext,
  texts: TokenTexts,
): Omit<DumpLine, "place" | "ground_truth" | "prompt_messages" | "tools" | "tool_schemas" | "advantage"> {
  const { rewards, timeline, sampling, images } = trajectory;
  const turns = (timeline?.turns ?? []).map(
    ({
      role,
      start,
      end,
      toolCalls,
      failures,
      state,
      policyVersion,
      sampledBy,
      call,
      startedAt,
      endedAt,
    }): DumpTurn => ({
      role,
      start,
      end,
      ...(toolCalls ? { tool_calls: toolCalls } : {}),
      ...(failures ? { failures } : {}),
      ...(state === undefined ? {} : { state }),
      ...(policyVersion === undefined ? {} : { policy_version: policyVersion }),
      ...(sampledBy === undefined ? {} : { sampled_by: sampledBy }),
      ...(call ? { call: describeCall(call) } : {}),
      ...(times ? { started_at: startedAt, ended_at: endedAt } : {}),
    }),
  );
  return {
    format_version: DUMP_FORMAT_VERSION,
    step,
    uid: trajectory.uid,
    sample: trajectory.sampleIndex,
    row: trajectory.rowIndex,
    data_source: trajectory.dataSource,
    ...describeJudgement(trajectory),
    finish_reason: trajectory.finishReason,
    num_turns: trajectory.numTurns,
    messages: trajectory.messages,
    ...(images ? { images: images.map(describeImage) } : {}),
    ...(trajectory.segments ? { segments: trajectory.segments.map((segment) => ({ ...segment })) } : {}),
    prompt_length: trajectory.promptLength,
    token_ids: hideVectors(trajectory.tokenIds, engine.info.vocabSize),
    response_mask: [...trajectory.responseMask],
    token_level_rewards: [...rewards.tokenLevel],
    // Nine digits distinguish any two 32-bit floats.
    rollout_logprobs: [...trajectory.rolloutLogprobs].map((x) => Number(x.toPrecision(9))),
    ...(sampling
      ? {
          sampling: {
            seed: sampling.seed,
            temperature: sampling.temperature,
            top_p: sampling.topP,
            top_k: sampling.topK,
            min_p: sampling.minP,
            ...(sampling.earlierSeeds ? { earlier_seeds: [...sampling.earlierSeeds] } : {}),
          },
        }
      : {}),
    ...(trajectory.turnValues ? { turn_values: [...trajectory.turnValues] } : {}),
    ...(trajectory.branch ? { branch: { ...trajectory.branch } } : {}),
    spans: cutSpans(trajectory, turns, engine, texts),
    turns,
    turn_scores: describeStepRewards(trajectory.turnScores),
    tool_rewards: describeStepRewards(trajectory.toolRewards),
    metrics: trajectory.metrics,
    ...(times && timeline ? { loop_states: timeline.loop, request_states: timeline.request } : {}),
  };
}

function describeDetails(
  details: TokenDetails | undefined,
): Pick<DumpLine, "old_logprobs" | "ref_logprobs" | "teacher_logprobs" | "advantages" | "entropy"> {
  if (!details) return {};
  const { oldLogprobs, refLogprobs, teacherLogprobs, advantages, entropy } = details;
  return {
    old_logprobs: oldLogprobs && round(oldLogprobs),
    ref_logprobs: refLogprobs && round(refLogprobs),
    ...(teacherLogprobs ? { teacher_logprobs: round(teacherLogprobs) } : {}),
    advantages: advantages && round(advantages),
    entropy: entropy && round(entropy),
  };
}

/** Rounds to six decimals. */
function round(values: ArrayLike<number>): number[] {
  return Array.from(values, (value) => Number(value.toFixed(6)));
}

function describeImage({ image, start, length }: TrajectoryImage): DumpImage {
  const { hash, width, height, mimeType } = image;
  return { hash, width, height, mime_type: mimeType, start, length };
}

/** Splits the whole text where the mask changes, and at the boundaries of turns, calls and images. */
function cutSpans(
  { tokenIds, responseMask, promptLength, segments = [], images = [] }: Trajectory,
  turns: readonly DumpTurn[],
  engine: DumpContext["engine"],
  texts: TokenTexts,
): DumpSpan[] {
  const cuts = new Set([0, promptLength, ...segments.map(({ start }) => start)]);
  for (const { start, end, tool_calls } of turns)
    for (const cut of [start, end, tool_calls?.start, tool_calls?.end]) if (cut !== undefined) cuts.add(cut);
  for (const { start, length } of images) cuts.add(start).add(start + length);
  for (let t = 1; t < tokenIds.length; t++) if (responseMask[t] !== responseMask[t - 1]) cuts.add(t);
  const starts = [...cuts].filter((cut) => cut < tokenIds.length).sort((a, b) => a - b);
  return starts.map((start, i) => {
    const ids = tokenIds.subarray(start, starts[i + 1] ?? tokenIds.length);
    const text = engine.detokenize(ids);
    const image = images.findIndex((shown) => shown.start <= start && start < shown.start + shown.length);
    if (image >= 0) return { start, mask: 0, text, image };
    const ends = texts.findEnds(ids, text);
    return { start, mask: responseMask[start] === 1 ? 1 : 0, text, ...(ends ? { ends } : {}) };
  });
}

/** Number of prompt messages if the row is unknown: those before the first of an assistant. */
function countPrompt(messages: Trajectory["messages"]): number {
  const first = messages.findIndex((message) => message.role === "assistant");
  return first < 0 ? messages.length : first;
}

/** Converts a row's value to JSON; a user's dataset may contain any value. */
export function toJson(value: unknown): unknown {
  if (value === undefined) return null;
  try {
    const text = JSON.stringify(value, (_, entry: unknown) => {
      if (typeof entry === "bigint") return String(entry);
      return ArrayBuffer.isView(entry)
        ? Buffer.from(entry.buffer, entry.byteOffset, entry.byteLength).toString("base64")
        : entry;
    });
    return text === undefined ? String(value) : (JSON.parse(text) as unknown);
  } catch {
    // The value refers to itself, or has a getter that throws.
    return toPlainData(value);
  }
}
