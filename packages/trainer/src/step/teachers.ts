import { listTurns, weighTurns } from "@cria/algorithms/internal";
import { type ChatMessage, ConfigError, DataError, type ToolSchema, type Trajectory } from "@cria/core";
import { agentLoops as builtInLoops, type DatasetRow, type RolloutOptions, type SamplingPolicy } from "@cria/rollout";
import { listToolSchemas } from "@cria/rollout/internal";
import type { DistillationOptions, TeacherModel } from "../config/options/distillation.js";
import { resolvePath } from "../config/paths.js";
import type { LossWeights } from "../policy/mix-mini-batch.js";
import { evaluatePaths } from "../policy/paths.js";
import type { Policy } from "../policy/policy.js";
import { type LoadTeacherOptions, loadTeacher, teachItself } from "../policy/teacher.js";
import type { Teacher, TeacherScores } from "../policy/token-scores.js";
import type { Environment } from "../task/environment.js";
import { readField } from "../task/read-field.js";
import { isGuided, shareOfTeacher } from "./guidance.js";

/** Parts of a trajectory that its teacher is asked by. */
export type Taught = Pick<
  Trajectory,
  "rowIndex" | "tokenIds" | "segments" | "promptLength" | "responseMask" | "extraFields"
>;

interface NamedTeacher extends Pick<TeacherModel, "key" | "hintKey" | "correctionKey"> {
  name: string;
  teacher: Teacher;
}

export interface TeachersInputs {
  options: DistillationOptions;
  policy: Policy;
  environment: Pick<Environment, "tools" | "agentLoops" | "defaultAgentLoop">;
  trainRows: readonly DatasetRow[];
  /** Number of likeliest tokens that the loss compares in place of each token; 0: none. */
  topk: number;
  /** Weights of rows in the terms of the loss, by index of row: a row of weight 0 has no teacher. */
  lossWeights?: ReadonlyMap<number, LossWeights> | null;
}

/** The teachers of a run: each scores the conversations of its rows. */
export class Teachers {
  private constructor(
    private readonly teachers: readonly NamedTeacher[],
    private readonly inputs: TeachersInputs,
    private readonly rows: ReadonlyMap<number, DatasetRow>,
  ) {}

  /**
   * Loads the teachers.
   * @throws ConfigError for a row without a teacher, a model with another vocabulary, or more likeliest tokens than the
   * vocabulary has; DataError for a row without a hint; EngineError.
   */
  static async open(
    inputs: TeachersInputs,
    { folder, ...device }: { folder: string } & Pick<LoadTeacherOptions, "device" | "threads">,
  ): Promise<Teachers> {
    const { options, policy, trainRows } = inputs;
    const samples = options.guidedShare > 0;
    if (samples) checkLoops(inputs);
    checkTopk(inputs);
    const opened: NamedTeacher[] = [];
    const teachers = new Teachers(opened, inputs, new Map(trainRows.map((row) => [row.index, row])));
    try {
      for (const [name, { key, hintKey, correctionKey, model, adapter, weights }] of Object.entries(options.teachers)) {
        const teacher = isPolicyItself({ model, adapter })
          ? teachItself(policy, weights)
          : await loadTeacher(resolvePath(folder, model ?? policy.engine.info.path), policy, {
              ...device,
              samples,
              ...(adapter === null ? {} : { adapter: resolvePath(folder, adapter) }),
            });
        opened.push({ name, key, hintKey, correctionKey, teacher });
      }
      for (const row of trainRows) if (teachers.hasTeacher(row)) teachers.readHint(teachers.find(row), row);
      return teachers;
    } catch (error) {
      await teachers.dispose();
      throw error;
    }
  }

  /** True if a teacher reads what judges say of a conversation: it can score a conversation only once it is judged. */
  get readsCorrections(): boolean {
    return this.teachers.some(({ correctionKey }) => correctionKey !== null);
  }

  /** True if a conversation's row has a teacher, and this teacher the hint that it needs. */
  teaches(trajectory: Pick<Taught, "rowIndex" | "extraFields">): boolean {
    const row = this.rowOf(trajectory);
    if (!this.hasTeacher(row)) return false;
    const teacher = this.find(row);
    return !isHinted(teacher) || this.chooseHint(teacher, trajectory) !== null;
  }

  /**
   * Scores of each trajectory's tokens by its row's teacher, as long as `tokenIds`; 0 before the first sampled token, and
   * in conversations that nobody teaches.
   */
  async score(
    trajectories: readonly Taught[],
    options: { temperature: number; signal?: AbortSignal },
  ): Promise<TeacherScores[]> {
    const scores: TeacherScores[] = new Array(trajectories.length);
    for (const entry of this.teachers) {
      const own = [...trajectories.keys()].filter((i) => {
        const trajectory = trajectories[i]!;
        return this.teaches(trajectory) && this.find(this.rowOf(trajectory)) === entry;
      });
      if (own.length === 0) continue;
      const found = await this.scoreBy(
        entry,
        own.map((i) => trajectories[i]!),
        options,
      );
      own.forEach((i, k) => {
        scores[i] = found[k]!;
      });
    }
    return trajectories.map(({ tokenIds: { length } }, i) => scores[i] ?? makeEmptyScores(length, this.inputs.topk));
  }

  /** Chooses the turns of a step that a row's teacher samples; undefined: none. */
  guide(step: number): RolloutOptions["choose"] {
    const share = shareOfTeacher(step, this.inputs.options);
    if (share === 0) return undefined;
    return (turn) => (this.hasTeacher(turn.row) && isGuided(turn, share) ? this.lead(turn.row) : null);
  }

  /** The teacher of a row as the sampler of a turn. */
  lead(row: DatasetRow): SamplingPolicy {
    return { engine: this.find(row).teacher.engine!, sampledBy: "teacher" };
  }

  /** Weight of each token in the teacher's loss term; null: all are 1. */
  weigh(trajectory: Taught, logprobs: Float32Array, teacherLogprobs: Float32Array): Float32Array | null {
    const { turnWeights, turnWeightDelta } = this.inputs.options;
    if (turnWeights === "none") return null;
    return weighTurns(logprobs, teacherLogprobs, listTurns(trajectory), turnWeightDelta);
  }

  /** Share of judged conversations with a correction, of those whose teacher reads corrections. */
  measureCorrections(trajectories: readonly Pick<Taught, "rowIndex" | "extraFields">[]): Record<string, number> {
    if (!this.readsCorrections) return {};
    const asked = trajectories.flatMap((trajectory) => {
      const row = this.rowOf(trajectory);
      const { correctionKey } = this.hasTeacher(row) ? this.find(row) : { correctionKey: null };
      return correctionKey === null ? [] : [readCorrection(correctionKey, trajectory)];
    });
    const corrected = asked.filter((correction) => correction !== null).length;
    return { "distillation/corrected": corrected / Math.max(1, asked.length) };
  }

  async dispose(): Promise<void> {
    for (const { teacher } of this.teachers) await teacher.dispose();
  }

  private async scoreBy(
    entry: NamedTeacher,
    trajectories: readonly Taught[],
    given: { temperature: number; signal?: AbortSignal },
  ): Promise<TeacherScores[]> {
    const { teacher } = entry;
    const options = { ...given, topk: this.inputs.topk };
    if (!isHinted(entry)) {
      const { sequences, join, joinLikeliest } = evaluatePaths(trajectories);
      const scores = await teacher.score(sequences, options);
      const logprobs = join(scores.map((score) => score.logprobs));
      const lists = this.inputs.topk > 0 ? joinLikeliest(scores.map(({ likeliest }) => likeliest!)) : null;
      return logprobs.map((own, i) => ({ logprobs: own, likeliest: lists?.[i] }));
    }
    // The conversations of a group have one prompt, and share it unless a judge corrects them.
    const encoded = new Map<string, Int32Array>();
    const prompts = trajectories.map((trajectory) => {
      const hint = this.chooseHint(entry, trajectory)!;
      const key = `${trajectory.rowIndex} ${hint}`;
      const prompt = encoded.get(key) ?? this.encodeHinted(trajectory, hint, entry);
      encoded.set(key, prompt);
      return prompt;
    });
    const sequences = trajectories.map(({ tokenIds, promptLength }, i) => ({
      tokenIds: [...prompts[i]!, ...tokenIds.subarray(promptLength)],
      from: prompts[i]!.length,
    }));
    const scores = await teacher.score(sequences, options);
    return trajectories.map(({ tokenIds, promptLength }, i) => {
      const { logprobs, likeliest } = scores[i]!;
      // Behind the hinted prompt the tokens are the policy's, at other places.
      const move = <Values extends Float32Array | Int32Array>(values: Values, moved: Values, width: number): Values => {
        moved.set(values.subarray(prompts[i]!.length * width), promptLength * width);
        return moved;
      };
      return {
        logprobs: move(logprobs, new Float32Array(tokenIds.length), 1),
        likeliest: likeliest && {
          count: likeliest.count,
          ids: move(likeliest.ids, new Int32Array(tokenIds.length * likeliest.count), likeliest.count),
          logprobs: move(likeliest.logprobs, new Float32Array(tokenIds.length * likeliest.count), likeliest.count),
        },
      };
    });
  }

  /**
   * Encodes the prompt of a conversation with the hint as its system message; the prompt's own system message follows
   * the hint.
   */
  private encodeHinted(trajectory: Taught, hint: string, { name, correctionKey }: NamedTeacher): Int32Array {
    const row = this.rowOf(trajectory);
    if (trajectory.segments) {
      throw new ConfigError("is given in front of one conversation", {
        code: "config/bad-value",
        subject: `distillation.teacher_models.${name}.${correctionKey === null ? "hint_key" : "correction_key"}`,
        expected: "tasks with tools or interactions, whose conversations have no branches",
        received: `an agent's, of row ${row.uid}`,
      });
    }
    const { policy, environment } = this.inputs;
    const schemas: ToolSchema[] = listToolSchemas(environment.tools, row);
    return policy.tokenizer.encodePrompt(addHint(row.prompt, hint), schemas);
  }

  /** The correction of this conversation, else the hint of its row; null: it has neither. */
  private chooseHint(teacher: NamedTeacher, trajectory: Pick<Taught, "rowIndex" | "extraFields">): string | null {
    const { correctionKey } = teacher;
    const correction = correctionKey === null ? null : readCorrection(correctionKey, trajectory);
    return correction ?? this.readHint(teacher, this.rowOf(trajectory));
  }

  private hasTeacher({ index }: DatasetRow): boolean {
    return this.inputs.lossWeights?.get(index)?.teacher !== 0;
  }

  private rowOf({ rowIndex }: Pick<Taught, "rowIndex">): DatasetRow {
    return this.rows.get(rowIndex)!;
  }

  private find(row: DatasetRow): NamedTeacher {
    const { teacherKey } = this.inputs.options;
    const value = readField(row, teacherKey);
    const found =
      this.teachers.find(({ key }) => key !== null && key === value) ?? this.teachers.find(({ key }) => key === null);
    if (found) return found;
    throw new ConfigError("names no teacher", {
      code: "config/no-teacher",
      subject: `row ${row.place}: ${teacherKey}`,
      expected: this.teachers.map(({ key }) => key).join(", "),
      received: String(value),
      remedy: "a teacher whose key is this value, or one without key for all other rows: distillation.teacher_models",
    });
  }

  /** @throws DataError when a row has no hint. */
  private readHint({ hintKey, name }: Pick<NamedTeacher, "hintKey" | "name">, row: DatasetRow): string | null {
    if (hintKey === null) return null;
    const hint = hintKey === "ground_truth" ? row.groundTruth : readField(row, hintKey);
    if (typeof hint === "string" && hint !== "") return hint;
    throw new DataError("has no hint for its teacher", {
      code: "data/no-hint",
      subject: `row ${row.place}: ${hintKey}`,
      expected: `a text: distillation.teacher_models.${name}.hint_key names the field`,
      received: JSON.stringify(hint) ?? "nothing",
    });
  }
}

function makeEmptyScores(tokens: number, topk: number): TeacherScores {
  const likeliest = { count: topk, ids: new Int32Array(tokens * topk), logprobs: new Float32Array(tokens * topk) };
  return { logprobs: new Float32Array(tokens), likeliest: topk > 0 ? likeliest : undefined };
}

/** True if a teacher says something only in conversations for which it has a hint. */
function isHinted({ hintKey, correctionKey }: NamedTeacher): boolean {
  return hintKey !== null || correctionKey !== null;
}

/** The text that a judge said of a conversation; null: nothing, or no text. */
function readCorrection(key: string, { extraFields }: Pick<Taught, "extraFields">): string | null {
  const correction = Object.hasOwn(extraFields, key) ? extraFields[key] : null;
  return typeof correction === "string" && correction.trim() !== "" ? correction : null;
}

/** @throws ConfigError for more likeliest tokens than the policy can say. */
function checkTopk({ topk, policy }: TeachersInputs): void {
  const { vocabSize } = policy.engine.info;
  if (topk <= vocabSize) return;
  throw new ConfigError("is more than the tokens of the vocabulary", {
    code: "config/bad-value",
    subject: "distillation.distillation_loss.topk",
    expected: `at most ${vocabSize}`,
    received: String(topk),
  });
}

/** @throws ConfigError for a row whose loop samples its turns itself: a teacher cannot take one of them. */
function checkLoops({ environment, trainRows }: TeachersInputs): void {
  const { agentLoops = builtInLoops, defaultAgentLoop } = environment;
  for (const { agentName, place } of trainRows) {
    const name = agentName ?? defaultAgentLoop;
    if (agentLoops.find(name)?.recorded === "answers") continue;
    throw new ConfigError("lets the teacher sample turns, and this loop asks the policy alone", {
      code: "config/bad-value",
      subject: "distillation.guided.share",
      expected: "0, or rows of tool_agent and single_turn_agent",
      received: `${name}, of row ${place} (agent_name, or rollout.agent.default_agent_loop)`,
    });
  }
}

function addHint(prompt: readonly ChatMessage[], hint: string): ChatMessage[] {
  const [first, ...rest] = prompt;
  if (first?.role !== "system" || typeof first.content !== "string")
    return [{ role: "system", content: hint }, ...prompt];
  return [{ ...first, content: `${hint}\n\n${first.content}` }, ...rest];
}

/** True if a teacher is the policy's own model before training, which requires a reference. */
export function needsReference(options: DistillationOptions | null): boolean {
  return Object.values(options?.teachers ?? {}).some((entry) => isPolicyItself(entry) && entry.weights === "base");
}

function isPolicyItself({ model, adapter }: Pick<TeacherModel, "model" | "adapter">): boolean {
  return model === null && adapter === null;
}
