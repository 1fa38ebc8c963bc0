import { type ChatMessage, contentText } from "@cria/core";
import type { DumpLine } from "@cria/records";
import type { ToolParser } from "@cria/tools";
import type { ArgumentHistogram, EnvironmentDetail, ToolDetail } from "@cria/viewer/api";

/**
 * Most names, arguments of a tool, and values of an argument that are counted separately; a policy may invent any
 * number.
 */
const MOST_TOOLS = 200;
const MOST_ARGUMENTS = 30;
const MOST_VALUES = 2000;
/** Bars of a histogram, and characters of a bar's label. */
const MOST_BARS = 12;
const LONGEST_LABEL = 60;
const MOST_TIMES = 20_000;

/** Failures of calls whose tool does not exist, or whose text is no call. */
const UNKNOWN = "unknown_tool";
const INVALID = "invalid_call";

interface Tool {
  description: string;
  calls: number;
  failures: Map<string, number>;
  times: number[];
  arguments: Map<string, Argument>;
}

interface Argument {
  /** Calls that had this argument. */
  given: number;
  /** Number of calls by value, for the values that are counted separately. */
  values: Map<string | number, number>;
}

/** Counts of tools' calls, over conversations as they are read. */
export class ToolStatistics {
  conversations = 0;
  private invalid = 0;
  private readonly tools = new Map<string, Tool>();
  private readonly unknown = new Map<string, number>();

  /** @param parse reads calls from the policy's text. */
  constructor(private readonly parse: ToolParser) {}

  /** Counts a conversation, without its inconsistent parts. */
  add(line: DumpLine): void {
    this.conversations++;
    for (const { function: schema } of line.tool_schemas) {
      const tool = this.get(String(schema.name));
      if (tool) tool.description = String(schema.description ?? "").slice(0, 1000);
    }
    const calls = listCalls(line, this.parse);
    for (const call of calls) this.addCall(call);
    this.addTimes(line, calls);
  }

  /** Adds for each tool the mean time of the conversation's calls; if only turns have times, that of its turns. */
  private addTimes({ metrics }: DumpLine, calls: readonly Call[]): void {
    for (const name of new Set(calls.map((call) => call.name))) {
      const own = calls.filter((call) => call.name === name);
      const seconds = metrics[`tool_s/${name}`];
      const known = seconds === undefined ? [] : own.map(() => (1000 * seconds) / own.length);
      const times = seconds === undefined ? own.flatMap(({ milliseconds }) => milliseconds ?? []) : known;
      const tool = this.tools.get(name);
      tool?.times.push(...times.slice(0, MOST_TIMES - tool.times.length));
    }
  }

  private addCall({ name, failure, args }: Call): void {
    if (failure === INVALID) {
      this.invalid++;
      return;
    }
    if (failure === UNKNOWN) {
      const known = this.unknown.get(name);
      if (known !== undefined || this.unknown.size < MOST_TOOLS) this.unknown.set(name, (known ?? 0) + 1);
      return;
    }
    const tool = this.get(name);
    if (!tool) return;
    tool.calls++;
    if (failure !== null) tool.failures.set(failure, (tool.failures.get(failure) ?? 0) + 1);
    for (const [key, value] of Object.entries(args ?? {})) {
      const shown = typeof value === "number" && Number.isFinite(value) ? value : describe(value);
      addArgument(tool, key, { given: 1, values: new Map([[shown, 1]]) });
    }
  }

  /** Adds the counts of another one. */
  merge(other: ToolStatistics): void {
    this.conversations += other.conversations;
    this.invalid += other.invalid;
    addCounts(this.unknown, other.unknown);
    for (const [name, theirs] of other.tools) {
      const tool = this.get(name);
      if (!tool) continue;
      tool.description ||= theirs.description;
      tool.calls += theirs.calls;
      addCounts(tool.failures, theirs.failures);
      tool.times.push(...theirs.times.slice(0, MOST_TIMES - tool.times.length));
      for (const [key, argument] of theirs.arguments) addArgument(tool, key, argument);
    }
  }

  describe(): Omit<EnvironmentDetail, "steps"> {
    return {
      conversations: this.conversations,
      tools: [...this.tools].map(([name, tool]) => describeTool(name, tool)).sort((a, b) => b.calls - a.calls),
      unknown: [...this.unknown].map(([name, calls]) => ({ name, calls })).sort((a, b) => b.calls - a.calls),
      invalid: this.invalid,
    };
  }

  private get(name: string): Tool | null {
    let tool = this.tools.get(name);
    if (!tool && this.tools.size < MOST_TOOLS) {
      tool = { description: "", calls: 0, failures: new Map(), times: [], arguments: new Map() };
      this.tools.set(name, tool);
    }
    return tool ?? null;
  }
}

interface Call {
  name: string;
  /** Kind of the failure; null: there was an ordinary answer. */
  failure: string | null;
  args: Record<string, unknown> | null;
  /** Duration of the turn of tools, whose calls run in parallel; null when the dump has no times. */
  milliseconds: number | null;
}

/** The calls of a conversation, and their outcomes. */
function listCalls({ messages, prompt_messages, turns }: DumpLine, parse: ToolParser): Call[] {
  const said = messages.slice(prompt_messages);
  const calls: Call[] = [];
  let written: { name: string; args: Record<string, unknown> | null }[] = [];
  let position = 0;
  for (const turn of turns) {
    const message = said[position];
    if (turn.role === "assistant") {
      written = message?.role === "assistant" ? readCalls(message, parse) : [];
      position++;
    } else if (turn.role === "tool") {
      const failures = turn.failures ?? [null];
      const milliseconds = turn.started_at && turn.ended_at ? turn.ended_at - turn.started_at : null;
      failures.forEach((failure, i) => {
        const answer = said[position + i];
        const call = written[i];
        const name = call?.name ?? answer?.name ?? "";
        calls.push({ name, failure, args: call?.args ?? null, milliseconds });
      });
      position += failures.length;
    } else position++;
  }
  return calls;
}

/** Agents have structured calls, whose arguments may be JSON text; other calls are in the text. */
function readCalls(
  { content, tool_calls: calls }: ChatMessage,
  parse: ToolParser,
): { name: string; args: Record<string, unknown> | null }[] {
  if (!Array.isArray(calls))
    return parse(contentText(content)).calls.map(({ name, arguments: args, error }) => ({
      name,
      args: error ? null : args,
    }));
  return calls.map((call: { function?: { name?: unknown; arguments?: unknown } } | null) => {
    const given = call?.function?.arguments;
    return { name: String(call?.function?.name ?? ""), args: toObject(given) };
  });
}

function toObject(given: unknown): Record<string, unknown> | null {
  let value = given;
  if (typeof given === "string") {
    try {
      value = JSON.parse(given);
    } catch {
      return null;
    }
  }
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : null;
}

function describeTool(name: string, tool: Tool): ToolDetail {
  const times = tool.times.sort((a, b) => a - b);
  const at = (share: number) => times[Math.min(times.length - 1, Math.floor(share * times.length))]!;
  return {
    name,
    description: tool.description,
    calls: tool.calls,
    failures: Object.fromEntries(tool.failures),
    latency: times.length > 0 ? { median: at(0.5), p95: at(0.95), longest: times.at(-1)! } : null,
    arguments: [...tool.arguments].map(([key, argument]) => describeArgument(key, argument, tool.calls)),
  };
}

function addArgument({ arguments: known }: Tool, name: string, { given, values }: Argument): void {
  const own = known.get(name) ?? { given: 0, values: new Map() };
  if (known.size < MOST_ARGUMENTS) known.set(name, own);
  own.given += given;
  addCounts(own.values, values);
}

function describeArgument(name: string, { given, values }: Argument, calls: number): ArgumentHistogram {
  const numbers = [...values].filter((entry): entry is [number, number] => typeof entry[0] === "number");
  const isNumeric = numbers.length === values.size && values.size > MOST_BARS;
  const bins = isNumeric
    ? binNumbers(numbers)
    : rank(
        [...values].map(([value, count]) => ({ label: String(value), count })),
        given,
      );
  return { name, bins, missing: Math.max(0, calls - given) };
}

/** The most frequent values, and one bar for all others of `given`, also for those not counted separately. */
function rank(bars: { label: string; count: number }[], given: number): { label: string; count: number }[] {
  const sorted = bars.sort((a, b) => b.count - a.count);
  if (sorted.length <= MOST_BARS) return sorted;
  const shown = sorted.slice(0, MOST_BARS - 1);
  const more = sorted.length >= MOST_VALUES ? " and more" : "";
  const count = given - shown.reduce((sum, bar) => sum + bar.count, 0);
  return [...shown, { label: `${sorted.length - shown.length}${more} others`, count }];
}

function binNumbers(numbers: readonly (readonly [number, number])[]): { label: string; count: number }[] {
  const least = numbers.reduce((min, [value]) => Math.min(min, value), Number.POSITIVE_INFINITY);
  const most = numbers.reduce((max, [value]) => Math.max(max, value), Number.NEGATIVE_INFINITY);
  const width = (most - least) / MOST_BARS;
  const bins = Array.from({ length: MOST_BARS }, (_, k) => ({
    label: `${format(least + k * width)} to ${format(least + (k + 1) * width)}`,
    count: 0,
  }));
  for (const [value, count] of numbers)
    bins[Math.min(MOST_BARS - 1, Math.floor((value - least) / width))]!.count += count;
  return bins;
}

function format(value: number): string {
  return String(Number(value.toPrecision(3)));
}

function describe(value: unknown): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
  return text.length > LONGEST_LABEL ? `${text.slice(0, LONGEST_LABEL - 1)}…` : text;
}

function addCounts<K>(to: Map<K, number>, from: ReadonlyMap<K, number>): void {
  for (const [key, count] of from) if (to.has(key) || to.size < MOST_VALUES) to.set(key, (to.get(key) ?? 0) + count);
}
