import { randomUUID } from "node:crypto";
import { type ChatMessage, ConfigError, contentText, hashSeed, listImages, makeUniform, ToolError } from "@cria/core";
import { toContent, toContentPart } from "@cria/core/internal";
import { isUsableNumber, usableNumber } from "@cria/episodes/internal";
import type { BaseInteraction, InteractionReply } from "@cria/tools";
import { copyData } from "../copy-data.js";
import type { DatasetRow } from "../data/dataset-row.js";
import { isBadImage } from "../is-fatal.js";
import { describeData, keepData, toPlainRecord } from "../plain-data.js";
import { describeError, type PauseDeadline, runWithDeadline } from "../run-with-deadline.js";
import type { MultiTurnOptions } from "./agent-loop.js";
import type { LoopMetric } from "./loop-counters.js";

interface EpisodeInteractionOptions {
  interaction: BaseInteraction;
  row: DatasetRow;
  multiTurn: MultiTurnOptions;
  agentData: Record<string, unknown>;
  addMetric: (name: LoopMetric, value: number) => void;
  /** The seed that belongs to a turn of the assistant, counted from 1. */
  seedOf: (turn: number) => number;
  /** Loads a reply's images into memory; null: the policy takes no images. */
  show: ((content: ChatMessage["content"]) => Promise<ChatMessage["content"]>) | null;
  /** Asks for a reply through the conversation's journal, if it has one. */
  record?: <T>(messages: readonly ChatMessage[], turn: number, ask: () => Promise<T>) => Promise<T>;
  signal?: AbortSignal;
}

/**
 * Selects the row's interaction: the one named by `interaction_kwargs.name`, else the one named like the data
 * source; null if there is none.
 * @throws ConfigError for an unknown name.
 */
export function selectInteraction(
  interactions: ReadonlyMap<string, BaseInteraction> | null,
  row: DatasetRow,
): BaseInteraction | null {
  if (interactions === null) return null;
  const name = row.extraInfo.interaction_kwargs?.name;
  if (name === undefined || name === null) return interactions.get(row.dataSource) ?? null;
  const interaction = interactions.get(String(name));
  if (interaction) return interaction;
  throw new ConfigError("is not a configured interaction", {
    code: "config/unknown-interaction",
    subject: `row ${row.index}: extra_info.interaction_kwargs.name`,
    expected: [...interactions.keys()].join(", ") || "no interaction is configured",
    received: String(name),
    remedy: "name it in the file that multi_turn.interaction_config_path points to",
  });
}

/** Data of the interaction for the trajectory, beside messages, scores and metrics. */
export interface InteractionRecord {
  /** Text of the reply that ended the conversation; the policy never saw it. */
  interactionFinalText?: string;
  /** Non-numeric `data` of its replies, each with the number of assistant turns so far. */
  interactionData?: Record<string, unknown>[];
}

/** The interaction of one conversation: started before the first turn, always finalized. */
export class EpisodeInteraction {
  private readonly instanceId = randomUUID();
  /** Settles when the start has ended, even after its timeout. Never rejects. */
  private started: Promise<void> | undefined;
  private isStarted = false;
  /** Data for the trajectory's `extraFields`, beside messages and metrics. */
  readonly record: InteractionRecord = {};

  constructor(private readonly options: EpisodeInteractionOptions) {}

  /** @throws ToolError when it cannot start. */
  async start(): Promise<void> {
    const { interaction, row } = this.options;
    const starting = Promise.resolve().then(() =>
      interaction.startInteraction(this.instanceId, {
        ground_truth: row.groundTruth,
        data_source: row.dataSource,
        messages: copyData(row.prompt),
        ...this.kwargs(),
      }),
    );
    const settle = () => {
      this.isStarted = true;
    };
    this.started = starting.then(settle, settle);
    await this.guard("startInteraction", () => starting);
  }

  /**
   * True if the interaction replies to this answer: every `interactionInterval` turns, with probability
   * `interactionProb`.
   */
  isDue(assistantTurns: number): boolean {
    const { seedOf, multiTurn } = this.options;
    const { interactionInterval, interactionProb } = multiTurn;
    if (assistantTurns % interactionInterval !== 0) return false;
    return makeUniform(hashSeed(seedOf(assistantTurns), "interaction", assistantTurns))() < interactionProb;
  }

  /** @throws ToolError when it throws, times out or returns an invalid reply. */
  async respond(messages: readonly ChatMessage[], turn: number): Promise<Omit<InteractionReply, "data">> {
    const { interaction, addMetric, record } = this.options;
    const ask = () => this.askForReply(messages, turn);
    const reply = await (record ? record(messages, turn, ask) : ask());
    addMetric(`interaction_answers/${interaction.name}`, 1);
    const data: [string, unknown][] = [];
    for (const [name, value] of Object.entries(reply.data)) {
      if (isUsableNumber(value)) addMetric(`interaction/${interaction.name}/${name}`, value);
      else data.push([name, keepData(value)]);
    }
    const { shouldTerminate, score } = reply;
    if (shouldTerminate) this.record.interactionFinalText = contentText(reply.content);
    const content = shouldTerminate ? reply.content : await this.show(reply.content);
    if (data.length > 0) {
      this.record.interactionData ??= [];
      this.record.interactionData.push({ turn, ...Object.fromEntries(data) });
    }
    return { content, shouldTerminate, score: this.readScore(score ?? 0) };
  }

  private async askForReply(messages: readonly ChatMessage[], turn: number) {
    const { interaction, agentData, seedOf } = this.options;
    const given = await this.guard("generateResponse", (signal, pauseDeadline) =>
      interaction.generateResponse(this.instanceId, copyData(messages), {
        agentData,
        ...this.kwargs(),
        seed: hashSeed(seedOf(turn), "reply", turn),
        signal,
        pauseDeadline,
      }),
    );
    return this.readReply(given);
  }

  /** @throws ToolError for an image that cannot be read, or that the policy cannot see. */
  private async show(content: ChatMessage["content"]): Promise<ChatMessage["content"]> {
    if (listImages(content).length === 0) return content;
    const { show } = this.options;
    if (!show) throw this.fail("generateResponse", "texts: the model has no projector (model.mmproj)", "an image");
    try {
      return await show(content);
    } catch (cause) {
      if (!isBadImage(cause)) throw cause;
      throw this.fail("generateResponse", "images that can be read", describeError(cause), cause);
    }
  }

  /** Reads each field of an untrusted reply once. @throws ToolError when it is invalid. */
  private readReply(reply: unknown) {
    const expected = "{ shouldTerminate, content: string or parts, score }";
    try {
      const { content, shouldTerminate, score, data } = reply as Partial<Record<keyof InteractionReply, unknown>>;
      const read = readContent(content);
      if (read !== null)
        return { content: read, shouldTerminate: Boolean(shouldTerminate), score, data: toPlainRecord(data) };
    } catch (cause) {
      if (reply !== null && reply !== undefined)
        throw this.fail("generateResponse", expected, `a reply that cannot be read: ${describeError(cause)}`, cause);
    }
    throw this.fail("generateResponse", expected, describeData(reply));
  }

  /** @throws ToolError when it throws, times out or returns no number. */
  async calculateScore(): Promise<number> {
    const { interaction, multiTurn, addMetric } = this.options;
    let score: unknown;
    try {
      score = await runWithDeadline(multiTurn.toolTimeoutS, undefined, () =>
        interaction.calculateScore(this.instanceId),
      );
    } catch (cause) {
      addMetric("interaction_score_exception", 1);
      throw this.fail("calculateScore", "a number in time", describeError(cause), cause);
    }
    if (isUsableNumber(score)) return score;
    addMetric("interaction_bad_score", 1);
    throw this.fail("calculateScore", usableNumber, describeData(score));
  }

  /** Finalizes once per start, as soon as the start has ended; a failure becomes a metric. */
  async finalize(): Promise<void> {
    // A start that hangs must not delay the end of the conversation.
    if (this.isStarted) await this.finalizeNow();
    else void this.started?.then(() => this.finalizeNow());
  }

  private async finalizeNow(): Promise<void> {
    const { interaction, multiTurn, addMetric } = this.options;
    try {
      await runWithDeadline(multiTurn.toolTimeoutS, undefined, () => interaction.finalizeInteraction(this.instanceId));
    } catch {
      addMetric("interaction_finalize_exception", 1);
    }
  }

  private kwargs(): Record<string, unknown> {
    return this.options.row.extraInfo.interaction_kwargs ?? {};
  }

  private readScore(score: unknown): number {
    if (isUsableNumber(score)) return score;
    this.options.addMetric("interaction_bad_score", 1);
    return 0;
  }

  private async guard<T>(
    method: string,
    work: (signal: AbortSignal, pauseDeadline: PauseDeadline) => Promise<T>,
  ): Promise<T> {
    try {
      return await runWithDeadline(this.options.multiTurn.toolTimeoutS, this.options.signal, work);
    } catch (cause) {
      throw this.fail(method, "an answer in time", describeError(cause), cause);
    }
  }

  private fail(method: string, expected: string, received: string, cause?: unknown): ToolError {
    return new ToolError("failed", {
      code: "interaction/failed",
      subject: `${method} of interaction "${this.options.interaction.name}"`,
      expected,
      received: received?.slice(0, 500),
      cause,
    });
  }
}

/** Reads a text, or a list of texts and images; null for anything else. */
function readContent(given: unknown): ChatMessage["content"] | null {
  if (typeof given === "string") return given;
  if (!Array.isArray(given)) return null;
  const parts = given.map((part: unknown) => toContentPart(part)).filter((part) => part !== null);
  return parts.length === given.length ? toContent(parts) : null;
}
