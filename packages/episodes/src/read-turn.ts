import type { GenerateResult, ModelInfo, ToolSchema } from "@cria/core";
import type { ParsedToolCall, ParsedTurn, ToolParser } from "@cria/tools";
import { findCallTokens } from "./find-call-tokens.js";
import type { CallSpan } from "./message-graph.js";

/**
 * How an assistant's turn ended: with its end-of-turn token; with a stop string, `stopped`; at `max_tokens_per_turn`, `cut`;
 * or where nothing can follow it, since the response's tokens are used up or the run was aborted.
 */
export type TurnEnd = "ended" | "stopped" | "cut" | "length" | "aborted";

/** A turn that was sampled, as its agent reads it. */
export interface ReadTurn {
  end: TurnEnd;
  /** With the opening, which the prompt has said and no token spells, and with a stop string, whose tokens stay. */
  text: string;
  /** Left out where no calls were looked for. */
  parsed?: ParsedTurn;
  /** Calls to answer. The last one of a turn that was cut may be broken for that alone, and is then none. */
  calls: ParsedToolCall[];
  span?: CallSpan;
}

export interface ReadTurnOptions {
  engine: { info: Pick<ModelInfo, "endOfGenerationTokens">; detokenize(ids: ArrayLike<number>): string };
  /** What the prompt says in the assistant's name. */
  opening: string;
  /** Null: the turn is text alone. */
  parse: ToolParser | null;
  /** What the model may call; empty: nothing, calls are text. */
  schemas: readonly ToolSchema[];
  /** The limit of a turn; null: none. */
  maxTokensPerTurn: number | null;
  /** Tokens that were left for the turn. */
  remaining: number;
}

/** Reads a sampled turn: how it ended, and which calls it makes. */
export function readTurn(turn: GenerateResult, options: ReadTurnOptions): ReadTurn {
  const { engine, opening, parse, schemas } = options;
  const end = findEnd(turn, options);
  const text = opening + (end === "stopped" ? engine.detokenize(turn.tokenIds) : turn.text);
  if (!parse) return { end, text, calls: [] };
  const parsed = parse(text, schemas);
  const calls = schemas.length > 0 ? pickCalls(parsed, end) : [];
  if (calls.length === 0) return { end, text, parsed, calls };
  const place = findCallTokens(text, parsed, turn.tokenIds, (ids) => engine.detokenize(ids), opening);
  return { end, text, parsed, calls, span: { count: calls.length, ...place } };
}

function findEnd(
  { finishReason, tokenIds }: GenerateResult,
  { engine, maxTokensPerTurn, remaining }: ReadTurnOptions,
): TurnEnd {
  if (finishReason === "aborted") return "aborted";
  if (finishReason === "stop")
    return engine.info.endOfGenerationTokens.includes(tokenIds.at(-1)!) ? "ended" : "stopped";
  return tokenIds.length === maxTokensPerTurn && tokenIds.length < remaining ? "cut" : "length";
}

function pickCalls({ calls }: ParsedTurn, end: TurnEnd): ParsedToolCall[] {
  return end === "cut" && calls.at(-1)?.error !== undefined ? calls.slice(0, -1) : calls;
}
