import type { PolicyEngine, ToolSchema, Trajectory } from "@cria/core";
import { listSampledTurns } from "@cria/core/internal";
import { findCallTokens } from "@cria/episodes/internal";
import { findArgumentError, type ParsedTurn } from "@cria/tools";
import { findOpenThinking } from "@cria/tools/internal";

/** The tool calls of one assistant turn. Indices count the trajectory's tokens. */
export interface FoundToolCalls {
  /**
   * Token range from the beginning of the first call to the end of the last (exclusive), including text between
   * them.
   */
  start: number;
  end: number;
  /** The turn's last token. */
  lastToken: number;
  /** Number of calls of an existing tool with arguments that fit its schema; at most `maxParallelCalls`. */
  valid: number;
}

export interface FindToolCallsOptions {
  engine: Pick<PolicyEngine, "detokenize" | "info">;
  parse: (text: string, tools: readonly ToolSchema[]) => ParsedTurn;
  /** Tools that the model could call. */
  schemas: readonly ToolSchema[];
  maxParallelCalls: number;
}

type SampledTokens = Pick<Trajectory, "tokenIds" | "responseMask" | "segments" | "timeline">;

/** Parses the calls from the tokens again, turn by turn. Turns without a call are left out. */
export function findToolCalls(trajectory: SampledTokens, options: FindToolCallsOptions): FoundToolCalls[] {
  const { engine, parse, schemas, maxParallelCalls } = options;
  const found: FoundToolCalls[] = [];
  for (const { start, end } of listSampledTurns(trajectory)) {
    const ended = engine.info.endOfGenerationTokens.includes(trajectory.tokenIds[end - 1]!);
    const ids = trajectory.tokenIds.subarray(start, ended ? end - 1 : end);
    const opening = readOpening(trajectory.tokenIds.subarray(Math.max(0, start - longestOpening), start), engine);
    const text = opening + engine.detokenize(ids);
    const parsed = parse(text, schemas);
    const { calls } = parsed;
    if (calls.length === 0) continue;
    const place = findCallTokens(text, parsed, ids, (part) => engine.detokenize(part), opening);
    const isValid = (call: ParsedTurn["calls"][number]) => {
      const schema = schemas.find((s) => s.function.name === call.name);
      return !call.error && schema !== undefined && !findArgumentError(schema, call.arguments);
    };
    found.push({
      start: start + place.start,
      end: start + place.end,
      lastToken: end - 1,
      valid: calls.slice(0, maxParallelCalls).filter(isValid).length,
    });
  }
  return found;
}

/** In tokens, each of at least one character; the tags that open thinking are short. */
const longestOpening = 24;

/** The opening of the thoughts at the end of the generation prompt: calls within thoughts do not count. */
function readOpening(before: Int32Array, engine: Pick<PolicyEngine, "detokenize">): string {
  return findOpenThinking(engine.detokenize(before));
}

/** 1 on the tokens of tool calls; as long as the trajectory's tokens. */
export function maskToolCalls(length: number, calls: readonly FoundToolCalls[]): Uint8Array {
  const mask = new Uint8Array(length);
  for (const { start, end } of calls) mask.fill(1, start, end);
  return mask;
}
