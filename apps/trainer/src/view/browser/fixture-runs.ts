import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type ChatMessage, encodePng } from "@cria/core";
import type { DumpLine } from "@cria/records";
import { DUMP_FORMAT_VERSION } from "@cria/records/internal";
import type { ClusterView, WorkerView } from "@cria/viewer/api";

/** Text by which a model may try to harm its reader: markup, terminal commands, characters that turn text around. */
export const HOSTILE =
  "<script>window.hurt = 1</script><img src=x onerror='window.hurt = 1'>\u001b[2J\u0000\u202Eevil\u202C</div></body> {{window.hurt = 1}}";
/** A line without an end. */
export const HUGE = "wide".repeat(100_000);

const SCHEMA = {
  type: "function" as const,
  function: {
    name: "calculator",
    description: "Evaluates an arithmetic expression.",
    parameters: { type: "object", properties: { expression: { type: "string" } }, required: ["expression"] },
  },
};

/** Run folders like those of trainings: healthy, failed, running, empty, damaged, old, hostile, long. */
export function writeRuns(folder: string): void {
  writeRun(folder, "healthy", { steps: 12, estimator: "grpo", gain: 0.07, workers: 3 });
  writeRun(folder, "failed", { steps: 6, estimator: "rloo", gain: 0.01 });
  writeJson(join(folder, "failed", "end.json"), { status: "failed", error: "the disk is full", at: "2026-01-01" });
  writeRun(folder, "running", { steps: 4, estimator: "grpo", gain: 0.05, workers: 2 });
  writeLive(folder, { step: 4 });
  mkdirSync(join(folder, "empty"));
  writeJson(join(folder, "empty", "run.json"), { model: "m.gguf", started: "2026-01-01T00:00:00.000Z" });
  writeRun(folder, "damaged", { steps: 3, estimator: "grpo", gain: 0.1, tail: '{"training/global_step": 4, "crit' });
  writeFileSync(join(folder, "damaged", "config.json"), "{");
  writeRun(folder, "hostile", { steps: 1, estimator: "grpo", gain: 0 });
  writeDump(join(folder, "hostile", "rollouts", "1.jsonl"), makeHostileLines());
  writeRun(folder, "long", { steps: 1, estimator: "grpo", gain: 0 });
  writeDump(join(folder, "long", "rollouts", "1.jsonl"), [makeLongLine(32_000)]);
  writeRun(folder, "seeing", { steps: 1, estimator: "grpo", gain: 0 });
  writeDump(join(folder, "seeing", "rollouts", "1.jsonl"), [makeSeeingLine(join(folder, "seeing", "rollouts"))]);
  writeRun(folder, "many", { steps: 1, estimator: "grpo", gain: 0 });
  const many = Array.from({ length: 6000 }, (_, i) => makeLine({ group: Math.floor(i / 4), sample: i % 4, step: 1 }));
  writeDump(join(folder, "many", "rollouts", "1.jsonl"), many);
  writeRun(folder, "branched", { steps: 1, estimator: "tree_grpo", gain: 0 });
  writeDump(join(folder, "branched", "rollouts", "1.jsonl"), makeBranchedLines());
  writeNumbers(join(folder, "numbers"));
  writeTaught(join(folder, "taught"));
  // In a separate folder, with the same prompts.
  writeRun(folder, "lab/desk", { steps: 1, estimator: "grpo", gain: 0 });
  const same = [0, 1, 2].map((sample) => ({ ...makeLine({ group: 0, sample: 0, step: 1 }), sample }));
  writeDump(join(folder, "lab", "desk", "rollouts", "1.jsonl"), same);
  mkdirSync(join(folder, "old", "rollouts"), { recursive: true });
  // Version 1: no spans, no turns, no parts.
  const { uid, data_source, messages, token_ids, response_mask, rollout_logprobs, reward } = makeLine({
    group: 0,
    sample: 0,
    step: 1,
  });
  const old = {
    uid,
    sample: 0,
    data_source,
    reward,
    score: reward,
    success: true,
    rewards: {},
    extra: {},
    error: null,
  };
  const rest = { finish_reason: "stop", num_turns: 4, messages, prompt_length: 12, token_ids, response_mask };
  const lists = { token_level_rewards: [], rollout_logprobs, metrics: {} };
  writeFileSync(join(folder, "old", "rollouts", "1.jsonl"), `${JSON.stringify({ ...old, ...rest, ...lists })}\n`);
}

/** A conversation, and another one that goes on from its first turn; the teacher sampled the turns behind that. */
function makeBranchedLines(): DumpLine[] {
  const [first, second] = [0, 1].map((sample) => ({ ...makeLine({ group: 0, sample: 0, step: 1 }), sample }));
  const [turn] = second!.turns.filter(({ role }) => role === "assistant");
  const turns = second!.turns.map((one) =>
    one.role === "assistant" && one !== turn ? { ...one, sampled_by: "teacher" as const } : one,
  );
  return [
    { ...first!, branch: { tree: 0, parent: null, turns: 0, tokens: 0 } },
    { ...second!, turns, branch: { tree: 0, parent: 0, turns: 1, tokens: turn!.end } },
  ];
}

/** Rewards are numbers, of two data sources; the second validation failed. The run was stopped. */
function writeNumbers(path: string): void {
  const validate = (rewards: readonly [number, number] | null) =>
    ["near", "far/off"].map((source, i) => ({
      [`val-core/${source}/failed_ratio`]: rewards ? 0 : 1,
      ...(rewards ? { [`val-core/${source}/reward/mean@2`]: rewards[i], [`val-aux/${source}/reward/std@2`]: 9 } : {}),
    }));
  const validations = new Map([
    [0, [0, 0.25] as const],
    [2, null],
    [4, [1, 0.75] as const],
  ]);
  const lines = [0, 1, 2, 3, 4].map((step) => {
    const validated = validations.has(step) ? validate(validations.get(step)!) : [];
    const { "reward_extra/acc/mean": _, "val-core/calculator/acc/mean@1": __, ...metrics } = makeMetrics(step, 0.1);
    const trained = step === 0 ? { "training/global_step": 0 } : metrics;
    return `${JSON.stringify(Object.assign({}, ...validated, trained))}\n`;
  });
  mkdirSync(path);
  writeJson(join(path, "config.json"), { algorithm: { adv_estimator: "grpo" }, actor_rollout_ref: {} });
  writeFileSync(join(path, "metrics.jsonl"), lines.join(""));
}

/** A run of `cria sft`. */
function writeTaught(path: string): void {
  const lines = Array.from({ length: 9 }, (_, step) => {
    const heldOut = step % 4 === 0 ? { "val/loss": 8 - step / 2, "val/loss_tokens": 50 } : {};
    const trained = { "train/loss": 8 - step / 2, "train/lr": 1e-3, "train/grad_norm": 1, "perf/time_per_step": 2 };
    return `${JSON.stringify({ "training/global_step": step, ...(step > 0 ? trained : {}), ...heldOut })}\n`;
  });
  mkdirSync(path);
  writeJson(join(path, "config.json"), { model: { path: "models/tiny.gguf" }, optim: { lr: 1e-3 } });
  writeFileSync(join(path, "metrics.jsonl"), lines.join(""));
}

/** The live state of a run in progress; its process is this one. `done`: conversations that a worker has held. */
export function writeLive(
  folder: string,
  {
    done,
    run = "running",
    ...given
  }: { step?: number; phase?: string; tokens_per_second?: number; done?: number; run?: string },
): void {
  const live = {
    format_version: 2,
    at: Date.now(),
    process: process.pid,
    step: 4,
    total: 12,
    phase: "rollout",
    conversations: { done: 3, generating: 4, waiting_for_tools: 1, total: 10 },
    tokens_per_second: 1234,
    seconds: {
      decoding: 45,
      waiting_for_tools: 2,
      waiting_for_groups: 3,
      scoring: 5,
      training: 30,
      validation: 4,
      other: 1,
    },
    staleness: 1,
    eta: 77,
    cluster: makeCluster(done ?? 24),
    ...given,
  };
  writeJson(join(folder, run, "live.json"), live);
}

/** Three workers: one working, one with wrong results, one that left. */
function makeCluster(done: number): ClusterView {
  const none = { rollout: 0, score: 0, gradient: 0 };
  const worker: WorkerView = {
    id: "barn-1",
    host: "barn",
    class: "x86-avx2",
    state: "ready",
    reason: null,
    slots: { rollout: 4, score: 1, gradient: 0 },
    doing: { rollout: 3, score: 0, gradient: 0 },
    done: { rollout: done, score: 6, gradient: 0 },
    failed: 1,
    lastFailure: null,
    oldest: 0,
    declined: 0,
    rate: 7.5,
    audits: { passed: 5, failed: 0 },
  };
  const wrong = { state: "shut-out", reason: "its logprobs differ <b>", audits: { passed: 1, failed: 2 } } as const;
  return {
    bus: "nats://barn:4222",
    coordinator: "barn/17",
    term: 1,
    class: "x86-avx2",
    policy: { version: 4, bytes: 20_000_000, seconds: 0.3 },
    workers: [
      worker,
      { ...worker, ...wrong, id: "field-1", host: HOSTILE, class: HOSTILE, doing: none },
      { ...worker, id: "old-1", state: "gone", slots: none, doing: none },
    ],
    here: { rollout: 8, score: 2, gradient: 4 },
    jobs: { outstanding: 5, waiting: 2, redelivered: 1, abandoned: 0, conflicts: 0 },
    traffic: { policy: 80_000_000, gradients: 0, jobs: 1_000_000 },
  };
}

/** A step's metrics about that many workers. */
const makeClusterMetrics = (step: number, workers: number): Record<string, number> => ({
  "cluster/workers": workers,
  "cluster/jobs_here": 4,
  "cluster/jobs_elsewhere": 20 + step,
  "cluster/redelivered": step % 2,
  "cluster/abandoned": 0,
  "cluster/audits": 1,
  "cluster/audits_failed": 0,
  "cluster/other_class": 0,
  "cluster/policy_bytes": 2e7,
  "cluster/gradient_bytes": 0,
  "cluster/job_bytes": 5e5,
  "cluster/image_bytes": 0,
  "cluster/policy_seconds": 0.3,
});

/** A line of metrics, as the run's steps write them. */
export function makeMetrics(step: number, gain: number): Record<string, number> {
  const success = Math.min(1, 0.2 + gain * step);
  return {
    "training/global_step": step,
    "critic/score/mean": success,
    "reward/score/mean": success,
    "reward_extra/acc/mean": success,
    "critic/rewards/frac_zero_std": 0.1 * (step % 3),
    "response_length/mean": 40 + step,
    "agent_loop/tool_error_rate": 0.1 / step,
    "actor/entropy": 0.5 / step,
    "perf/total_num_tokens": 5000,
    "perf/time_per_step": 2,
    ...(step % 6 === 0 ? { "val-core/calculator/failed_ratio": 0, "val-core/calculator/acc/mean@1": success } : {}),
  };
}

interface RunLook {
  steps: number;
  estimator: string;
  /** Gain of success for each step. */
  gain: number;
  /** Machines that share its work; none: it has one process. */
  workers?: number;
  /** Text after the last whole line of the metrics. */
  tail?: string;
}

function writeRun(folder: string, name: string, { steps, estimator, gain, workers, tail = "" }: RunLook): void {
  const path = join(folder, name);
  for (const part of ["rollouts", "validation"]) mkdirSync(join(path, part), { recursive: true });
  const config = {
    algorithm: { adv_estimator: estimator },
    actor_rollout_ref: { model: { path: "models/tiny.gguf" }, actor: { clip_ratio: 0.2 }, rollout: { seed: 1 } },
    trainer: { total_training_steps: 12 },
  };
  writeJson(join(path, "config.json"), config);
  writeJson(join(path, "run.json"), { model: "models/tiny.gguf", started: "2026-01-01T00:00:00.000Z" });
  const metrics = Array.from({ length: steps }, (_, i) => {
    const shared = workers === undefined ? {} : makeClusterMetrics(i + 1, workers);
    return `${JSON.stringify({ ...makeMetrics(i + 1, gain), ...shared })}\n`;
  });
  writeFileSync(join(path, "metrics.jsonl"), metrics.join("") + tail);
  for (let step = 1; step <= Math.min(3, steps); step++)
    writeDump(join(path, "rollouts", `${step}.jsonl`), makeStep(step));
  for (const step of [0, 6]) writeDump(join(path, "validation", `${step}.jsonl`), makeStep(step).slice(0, 8));
}

/** Six groups of four. */
function makeStep(step: number): DumpLine[] {
  return Array.from({ length: 24 }, (_, i) => makeLine({ group: Math.floor(i / 4), sample: i % 4, step }));
}

const PIECES = ["What", " is", " 6", " *", " 7", "?\n", "Use", " the", " tool", ",", " please", ".\n"];
const CALL = [
  "<tool_call>",
  '{"name": ',
  '"calculator"',
  ', "arguments": ',
  '{"expression": ',
  '"6*7"',
  "}}",
  "</tool_call>",
];
const ANSWER = ["So", " it", " is", " 4", "2", " 🎉", "."];

/**
 * A conversation of four turns with all fields of full detail; every third one fails its tool, every fourth its goal.
 */
export function makeLine({ group, sample, step }: { group: number; sample: number; step: number }): DumpLine {
  const success = (group + sample + step) % 4 !== 0;
  const broken = (group + sample) % 3 === 2;
  const reply = broken ? "error: division by zero" : "42";
  const answer = success ? ANSWER : ["I", " do", " not", " know", "."];
  const spans = [
    { mask: 0 as const, pieces: PIECES },
    { mask: 1 as const, pieces: CALL },
    { mask: 0 as const, pieces: ["\n", reply, "\n"] },
    { mask: 1 as const, pieces: answer },
  ];
  return makeTokens(spans, {
    step,
    uid: `calculator/0:${group}`,
    sample,
    row: group,
    place: `rows.jsonl, line ${group + 1}`,
    ground_truth: { answer: 42 },
    reward: success ? 1 : 0,
    success,
    messages: [
      { role: "system", content: "Use the tool, please." },
      { role: "user", content: `What is 6 * 7? (${group})` },
      { role: "assistant", content: `<think>I compute.</think>${CALL.join("")}` },
      { role: "tool", name: "calculator", content: reply },
      { role: "assistant", content: answer.join("") },
    ],
    prompt_messages: 2,
    failures: [broken ? "exception" : null],
  });
}

type Given = Pick<DumpLine, "step" | "uid" | "sample" | "row" | "place" | "ground_truth" | "reward" | "success"> &
  Pick<DumpLine, "messages" | "prompt_messages"> & { failures: (string | null)[] };

/** The line of a conversation whose tokens are these pieces, in spans: prompt, assistant, tool, assistant. */
function makeTokens(
  given: readonly { mask: 0 | 1; pieces: readonly string[] }[],
  { failures, ...line }: Given,
): DumpLine {
  const mask = given.flatMap((span) => span.pieces.map(() => span.mask));
  const value = (f: (i: number) => number) => mask.map((bit, i) => (bit ? Number(f(i).toFixed(6)) : 0));
  const starts = given.map((_, k) => given.slice(0, k).reduce((sum, span) => sum + span.pieces.length, 0));
  const rollout = value((i) => -0.05 - Math.abs(Math.sin(i)) * 2);
  const began = 1_767_225_600_000;
  return {
    format_version: DUMP_FORMAT_VERSION,
    data_source: "calculator",
    score: line.reward,
    parts: [{ name: "score", value: line.reward ?? 0, weight: 1, by: 'the reward of data_source "calculator"' }],
    rewards: { outcome: line.reward ?? 0, length: 0, tools: 0, turns: 0, tool_score: null, interaction_score: null },
    extra: { acc: line.reward },
    advantage: line.success ? 0.5 : -1.5,
    error: null,
    finish_reason: "stop",
    num_turns: 4,
    tools: ["calculator"],
    tool_schemas: line.sample === 0 && line.row === 0 ? [SCHEMA] : [],
    prompt_length: given[0]!.pieces.length,
    token_ids: mask.map((_, i) => (line.success || mask[i] === 0 ? i : i + 1000)),
    response_mask: mask,
    token_level_rewards: mask.map((_, i) => (i === mask.length - 1 ? (line.reward ?? 0) : 0)),
    rollout_logprobs: rollout,
    old_logprobs: value((i) => rollout[i]! + 0.3 * Math.sin(i * 5)),
    ref_logprobs: value((i) => rollout[i]! - 0.5),
    advantages: value(() => (line.success ? 0.5 : -1.5)),
    entropy: value((i) => Math.abs(Math.sin(i)) * 2),
    spans: given.map(({ mask: bit, pieces }, k) => {
      let end = 0;
      return {
        start: starts[k]!,
        mask: bit,
        text: pieces.join(""),
        ends: pieces.map((piece) => (end += piece.length)),
      };
    }),
    turns: (["assistant", "tool", "assistant"] as const).map((role, k) => ({
      role,
      start: starts[k + 1]!,
      end: starts[k + 2] ?? mask.length,
      ...(role === "tool" ? { failures } : {}),
      started_at: began + k * 300,
      ended_at: began + k * 300 + 250,
    })),
    turn_scores: [],
    tool_rewards: [],
    metrics: { tool_calls: 1, tool_errors: failures.filter((failure) => failure !== null).length, decode_tokens: 15 },
    ...line,
  };
}

/** A conversation with a picture in its prompt and one in a tool's answer, whose files are in the folder. */
function makeSeeingLine(folder: string): DumpLine {
  mkdirSync(join(folder, "images"));
  const pictures = [32, 160].map((size) => {
    const rgb = Uint8Array.from({ length: size * size * 3 }, (_, i) => (i * 7) % 256);
    const bytes = encodePng({ width: size, height: size, rgb });
    const hash = createHash("sha256").update(bytes).digest("hex");
    writeFileSync(join(folder, "images", `${hash}.png`), bytes);
    return { hash, width: size, height: size, mime_type: "image/png" as const };
  });
  const line = makeLine({ group: 0, sample: 0, step: 1 });
  const at = [4, line.prompt_length + CALL.length];
  const show = (i: number, text: string) =>
    [
      { type: "image", image: pictures[i] },
      { type: "text", text },
    ] as unknown as ChatMessage["content"];
  const messages = line.messages.map((message) => {
    if (message.role === "user") return { ...message, content: show(0, "Which digit?") };
    return message.role === "tool" ? { ...message, content: show(1, "The region.") } : message;
  });
  const [prompt, ...others] = line.spans;
  const cut = (from: number, to: number) => ({
    start: from,
    mask: 0 as const,
    text: PIECES.slice(from, to).join(""),
    ends: PIECES.slice(from, to).map((_, i) => PIECES.slice(from, from + i + 1).join("").length),
  });
  const spans = [
    cut(0, 4),
    { start: 4, mask: 0 as const, text: "", image: 0 },
    cut(8, prompt!.ends!.length),
    ...others,
  ];
  const images = pictures.map((picture, i) => ({ ...picture, start: at[i]!, length: i === 0 ? 4 : 3 }));
  const { text: _text, ends: _ends, ...answered } = others[1]!;
  spans[4] = { ...answered, text: "", image: 1 };
  const isImage = (t: number) => images.some(({ start, length }) => t >= start && t < start + length);
  return { ...line, messages, images, spans, token_ids: line.token_ids.map((id, t) => (isImage(t) ? -1 : id)) };
}

function makeHostileLines(): DumpLine[] {
  return [0, 1].map((sample) => {
    const line = makeLine({ group: 0, sample, step: 1 });
    const text = sample === 0 ? HOSTILE : HUGE;
    return {
      ...line,
      uid: HOSTILE,
      place: HOSTILE,
      data_source: HOSTILE,
      ground_truth: HOSTILE,
      extra: { [HOSTILE]: HOSTILE },
      parts: [{ name: HOSTILE, value: 1, weight: 1, by: HOSTILE }],
      messages: line.messages.map((message) => ({
        ...message,
        content: text,
        ...(message.role === "tool" ? { name: HOSTILE } : {}),
        ...(message.role === "assistant"
          ? { tool_calls: [{ id: "1", type: "function" as const, function: { name: HOSTILE, arguments: text } }] }
          : {}),
      })),
      spans: line.spans.map((span) => ({
        ...span,
        text,
        ends: span.ends!.map((_, i, { length }) => (i + 1 === length ? text.length : 3 * i)),
      })),
    };
  });
}

/** A conversation of that many tokens. */
function makeLongLine(tokens: number): DumpLine {
  const sampled = Array.from({ length: tokens - 24 }, (_, i) => (i % 17 === 16 ? "\n" : ` word${i % 97}`));
  const spans = [
    { mask: 0 as const, pieces: PIECES },
    { mask: 1 as const, pieces: sampled },
    { mask: 0 as const, pieces: ["\n", "42", "\n"] },
    { mask: 1 as const, pieces: [...ANSWER, "a", "b"] },
  ];
  return makeTokens(spans, {
    step: 1,
    uid: "calculator/0:0",
    sample: 0,
    row: 0,
    place: null,
    ground_truth: 42,
    reward: 1,
    success: true,
    messages: [
      { role: "user", content: "What is 6 * 7?" },
      { role: "assistant", content: sampled.join("") },
      { role: "tool", content: "42" },
      { role: "assistant", content: ANSWER.join("") },
    ],
    prompt_messages: 1,
    failures: [null],
  });
}

function writeDump(file: string, lines: readonly DumpLine[]): void {
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
}

function writeJson(file: string, value: unknown): void {
  writeFileSync(file, JSON.stringify(value));
}
