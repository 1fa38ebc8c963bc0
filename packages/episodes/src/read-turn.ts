import type { GenerateResult, ModelInfo, ToolSchema } from "@cria/core";
import type { ParsedToolCall, ParsedTurn, ToolParser } from "@cria/tools";
import { findCallTokens } from "./find-call-tokens.js";
import type { CallSpan } from "./message-graph.js";

/**
 * End of an assistant's turn. ended: by its end-of-turn token. stopped: by a stop string. cut: at
 * `max_tokens_per_turn`. length: the response's tokens are used up. aborted: the run was aborted.
 */
export type TurnEnd = "ended" | "stopped" | "cut" | "length" | "aborted";

/** A sampled turn, parsed. */
export interface ReadTurn {
  end: TurnEnd;
  /**
   * Text including the opening, which the prompt contains and no token spells, and including a stop string, whose
   * tokens stay.
   */
  text: string;
  /** Left out if calls were not parsed. */
  parsed?: ParsedTurn;
  /** Calls to answer. In a turn that was cut, a broken last call is dropped, because the cut may have broken it. */
  calls: ParsedToolCall[];
  span?: CallSpan;
}

export interface ReadTurnOptions {
  engine: { info: Pick<ModelInfo, "endOfGenerationTokens">; detokenize(ids: ArrayLike<number>): string };
  /** The beginning of the message that the generation prompt contains. */
  opening: string;
  /** Parser of tool calls; null: the turn is plain text. */
  parse: ToolParser | null;
  /** Tools that the model may call; empty: none, calls are plain text. */
  schemas: readonly ToolSchema[];
  /** Maximum number of tokens per turn; null: no limit. */
  maxTokensPerTurn: number | null;
  /** Number of tokens that were left for the turn. */
  remaining: number;
}

/** Parses a sampled turn: how it ended, and its calls. */
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
