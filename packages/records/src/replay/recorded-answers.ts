import { type ChatMessage, ConfigError, contentText } from "@cria/core";
import { showContent } from "@cria/core/internal";
import { now } from "@cria/episodes";
import type { AnswerSource, DatasetRow, NextTurn, RolloutOptions, SaidTurn } from "@cria/rollout";
import { listToolSchemas } from "@cria/rollout/internal";
import type { ParsedToolCall } from "@cria/tools";
import { resolveToolFormat } from "@cria/tools/internal";
import type { DumpLine } from "../dump/dump-line.js";

export interface RecordedAnswersOptions {
  /** Parses the calls of an assistant's turn. */
  readCalls: (text: string) => readonly ParsedToolCall[];
  /**
   * True: tools and interaction run. Before `changedTurn` they run only for their side effects, and the recorded
   * replies are used; from there on, their own. Default false: they do not run, and recorded replies are used as
   * long as the calls are equal.
   */
  isLive?: boolean;
  /** The assistant's turn (from 1) that may differ; default: none. */
  changedTurn?: number;
  /** Handling of a turn to which no reply was recorded: "fail" (default), or end the conversation as aborted. */
  onOtherTurn?: "fail" | "abort";
  /** Called with each reply from the changed turn on. */
  onMessage?: (message: ChatMessage) => void;
  /** Called when a live reply differs from the recorded one. */
  onOtherAnswer?: (recorded: string, live: string) => void;
}

/** Required fields of a record; dump lines and just-ended conversations have them. */
export type AnswerRecord = Pick<DumpLine, "messages" | "prompt_messages" | "finish_reason" | "turns">;

/** Makes a parser of assistant turns, for conversations of this row. */
export function makeReadCalls(
  { tools, multiTurn }: Pick<RolloutOptions, "tools" | "multiTurn">,
  row: DatasetRow,
): RecordedAnswersOptions["readCalls"] {
  const schemas = listToolSchemas(tools, row);
  const { parse } = resolveToolFormat(multiTurn.format);
  return (text) => (schemas.length > 0 ? parse(text, schemas).calls : []);
}

/** A recorded turn of the assistant, and the replies to it. */
interface RecordedTurn {
  text: string;
  answers: ChatMessage[];
}

/** Replies with the recorded messages of tools and users. */
export class RecordedAnswers implements AnswerSource {
  private readonly turns: RecordedTurn[];
  private isTextEqual = true;

  constructor(
    private readonly line: AnswerRecord,
    private readonly options: RecordedAnswersOptions,
  ) {
    this.turns = listTurns(line);
  }

  get isLive(): boolean {
    return this.options.isLive ?? false;
  }

  /** @throws ConfigError "replay/needs-live-tools" if no reply to this turn was recorded. */
  async follow(turn: SaidTurn, live: () => Promise<NextTurn>): Promise<NextTurn> {
    const recorded = this.turns[turn.number - 1];
    if (recorded?.text !== turn.text) this.isTextEqual = false;
    const next = await (this.isLive ? this.followLive(turn, recorded, live) : this.followRecord(turn, recorded, live));
    const { changedTurn = Number.POSITIVE_INFINITY, onMessage } = this.options;
    if (typeof next !== "string" && turn.number >= changedTurn)
      for (const message of next.messages) onMessage?.(message);
    return next;
  }

  private async followLive(
    { number }: SaidTurn,
    recorded: RecordedTurn | undefined,
    live: () => Promise<NextTurn>,
  ): Promise<NextTurn> {
    const next = await live();
    const isBefore = number < (this.options.changedTurn ?? Number.POSITIVE_INFINITY);
    if (!isBefore || !recorded) return next;
    const said = typeof next === "string" ? [] : next.messages;
    if (typeof next === "string" || recorded.answers.length !== said.length) {
      // A reply that did not fit was not recorded either.
      const wasCut = recorded.answers.length === 0 && this.line.finish_reason === "length";
      if (recorded.answers.length !== said.length && !wasCut)
        this.options.onOtherAnswer?.(showAll(recorded.answers), showAll(said));
      return next;
    }
    recorded.answers.forEach((answer, i) => {
      const content = showContent(answer.content);
      const said = showContent(next.messages[i]!.content);
      if (said !== content) this.options.onOtherAnswer?.(content, said);
    });
    return { ...next, messages: recorded.answers };
  }

  private async followRecord(
    turn: SaidTurn,
    recorded: RecordedTurn | undefined,
    live: () => Promise<NextTurn>,
  ): Promise<NextTurn> {
    // The conversation ends here: nobody replies.
    if (!turn.isAwaited) return live();
    if (!recorded || !this.isSame(turn, recorded)) {
      if (this.options.onOtherTurn === "abort") return "aborted";
      throw this.makeNeedsLiveTools(turn, recorded);
    }
    const { answers } = recorded;
    // The reply did not fit, or ended the conversation.
    if (answers.length === 0) return this.line.finish_reason;
    const role = answers[0]!.role === "tool" ? "tool" : "user";
    return {
      role,
      messages: answers,
      startedAt: now(),
      ...(role === "tool" ? { failures: this.failuresOf(turn) } : {}),
    };
  }

  private isSame({ text, calls }: SaidTurn, recorded: RecordedTurn): boolean {
    // An interaction reads the whole conversation, so all of it must be equal.
    if (calls.length === 0) return this.isTextEqual && text === recorded.text;
    return nameCalls(calls) === nameCalls(this.options.readCalls(recorded.text).slice(0, calls.length));
  }

  private failuresOf({ number }: SaidTurn): (string | null)[] | undefined {
    const spoken = this.line.turns.filter(({ role }) => role === "assistant");
    const at = this.line.turns.indexOf(spoken[number - 1]!);
    return at < 0 ? undefined : this.line.turns[at + 1]?.failures;
  }

  private makeNeedsLiveTools({ number, calls, text }: SaidTurn, recorded: RecordedTurn | undefined): ConfigError {
    const before = recorded ? this.options.readCalls(recorded.text) : [];
    return new ConfigError("says something to which no answer was recorded", {
      code: "replay/needs-live-tools",
      subject: `turn ${number} of the assistant`,
      expected: describe(before, recorded?.text) ?? "the end of the conversation",
      received: describe(calls, text),
      remedy: "let its tools and interaction really run: --live-tools",
    });
  }
}

const showAll = (messages: readonly ChatMessage[]) => messages.map(({ content }) => showContent(content)).join("\n");

function describe(calls: readonly ParsedToolCall[], text: string | undefined): string | undefined {
  return (calls.length > 0 ? nameCalls(calls) : text)?.slice(0, 300);
}

function nameCalls(calls: readonly ParsedToolCall[]): string {
  return calls.map(({ name, arguments: given, error }) => error ?? `${name}(${JSON.stringify(given)})`).join(", ");
}

function listTurns({ messages, prompt_messages }: AnswerRecord): RecordedTurn[] {
  const turns: RecordedTurn[] = [];
  for (const message of messages.slice(prompt_messages)) {
    if (message.role === "assistant") turns.push({ text: contentText(message.content), answers: [] });
    else turns.at(-1)?.answers.push(message);
  }
  return turns;
}
