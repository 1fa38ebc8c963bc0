import type { DumpLine } from "@cria/records";

export interface TimelineBar {
  title: string;
  kind: "generation" | "tool" | "user" | "waiting";
  /** Milliseconds since the conversation began. */
  start: number;
  end: number;
  /** Tokens that it added; 0 for waiting. */
  tokens: number;
}

/** A conversation's activities over time; null when the dump has no times. Gaps between turns are waiting. */
export function makeTimeline(line: DumpLine): TimelineBar[] | null {
  const timed = line.turns.filter((turn) => turn.started_at !== undefined && turn.ended_at !== undefined);
  if (timed.length === 0) return null;
  const states = [...(line.loop_states ?? []), ...(line.request_states ?? [])].map(({ at }) => at);
  const begin = Math.min(timed[0]!.started_at!, ...states);
  const bars: TimelineBar[] = [];
  let end = begin;
  for (const turn of timed) {
    const [from, to] = [turn.started_at!, turn.ended_at!];
    if (from - end > 1)
      bars.push({ title: "waiting", kind: "waiting", start: end - begin, end: from - begin, tokens: 0 });
    bars.push({
      title: { assistant: "generation", tool: "tools", user: "user" }[turn.role],
      kind: turn.role === "assistant" ? "generation" : turn.role,
      start: from - begin,
      end: to - begin,
      tokens: turn.end - turn.start,
    });
    end = Math.max(end, to);
  }
  return bars;
}
