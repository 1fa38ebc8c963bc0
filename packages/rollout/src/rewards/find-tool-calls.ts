import type { PolicyEngine, ToolSchema, Trajectory } from "@cria/core";
import { findArgumentError, type ParsedTurn, thinkingTags } from "@cria/tools";

/** The tool calls of one assistant turn. Indices count the trajectory's tokens. */
export interface FoundToolCalls {
  /** From the first call's beginning to the last one's end (exclusive), text between them included. */
  start: number;
  end: number;
  /** The turn's last token. */
  lastToken: number;
  /** Calls of a tool that exists, with arguments that fit its schema; at most `maxParallelCalls`. */
  valid: number;
}

export interface FindToolCallsOptions {
  engine: Pick<PolicyEngine, "detokenize" | "info">;
  parse: (text: string, tools: readonly ToolSchema[]) => ParsedTurn;
  /** What the model could call. */
  schemas: readonly ToolSchema[];
  maxParallelCalls: number;
}

type SampledTokens = Pick<Trajectory, "tokenIds" | "responseMask" | "segments" | "timeline">;

/** Reads the calls from the tokens again, turn by turn. Turns without a call are left out. */
export function findToolCalls(trajectory: SampledTokens, options: FindToolCallsOptions): FoundToolCalls[] {
  const { engine, parse, schemas, maxParallelCalls } = options;
  const found: FoundToolCalls[] = [];
  for (const { start, end } of listSampledTurns(trajectory)) {
    const ended = engine.info.endOfGenerationTokens.includes(trajectory.tokenIds[end - 1]!);
    const ids = trajectory.tokenIds.subarray(start, ended ? end - 1 : end);
    const opening = readOpening(trajectory.tokenIds.subarray(Math.max(0, start - longestOpening), start), engine);
    const text = engine.detokenize(ids);
    const { calls, content: whole } = parse(opening + text, schemas);
    if (calls.length === 0) continue;
    const content = whole.startsWith(opening) ? whole.slice(opening.length) : whole;
    const { head, tail } = findSurroundingText(text, content);
    const tokenAt = (chars: number) => countTokens(chars, ids, engine);
    const isValid = (call: ParsedTurn["calls"][number]) => {
      const schema = schemas.find((s) => s.function.name === call.name);
      return !call.error && schema !== undefined && !findArgumentError(schema, call.arguments);
    };
    found.push({
      start: start + tokenAt(head),
      end: start + (tail === 0 ? ids.length : tokenAt(text.length - tail)),
      lastToken: end - 1,
      valid: calls.slice(0, maxParallelCalls).filter(isValid).length,
    });
  }
  return found;
}

/** In tokens, each of which has a character at least; the tags that open thinking are short. */
const longestOpening = 24;

/** The thinking that the generation prompt opens in the assistant's name: calls that are only thought of are none. */
function readOpening(before: Int32Array, engine: Pick<PolicyEngine, "detokenize">): string {
  const text = engine.detokenize(before);
  const tag = thinkingTags.find(({ open }) => text.trimEnd().endsWith(open));
  return tag ? text.slice(text.lastIndexOf(tag.open)) : "";
}

/** 1 on the tokens of tool calls; as long as the trajectory's tokens. */
export function maskToolCalls(length: number, calls: readonly FoundToolCalls[]): Uint8Array {
  const mask = new Uint8Array(length);
  for (const { start, end } of calls) mask.fill(1, start, end);
  return mask;
}

/** Characters before and after the calls: what the text shares with its content, which lost the calls and some space. */
function findSurroundingText(text: string, content: string): { head: number; tail: number } {
  const body = content.trim();
  const lead = text.length - text.trimStart().length;
  const trail = text.length - text.trimEnd().length;
  let head = 0;
  while (head < body.length && text[lead + head] === body[head]) head++;
  let tail = 0;
  while (tail < body.length - head && text[text.length - trail - 1 - tail] === body[body.length - 1 - tail]) tail++;
  return { head: head === 0 ? 0 : lead + head, tail: tail === 0 ? 0 : trail + tail };
}

/** How many tokens lie wholly in the first `chars` characters. */
function countTokens(chars: number, ids: Int32Array, engine: Pick<PolicyEngine, "detokenize">): number {
  let low = 0;
  let high = ids.length;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (engine.detokenize(ids.subarray(0, middle)).length <= chars) low = middle;
    else high = middle - 1;
  }
  return low;
}
