import { colors as pc } from "../terminal/colors.js";
import { makePrintable } from "../terminal/printable-text.js";
import type { ChatCall, ChatTurn } from "./interactive-chat.js";

/** Most characters of a tool's answer on the screen. The model sees as much as the config's limits allow. */
const MOST_SHOWN = 2000;

/** A call and its answer, for people. */
export function describeCall({ name, arguments: args, result, failure }: ChatCall): string {
  const call = pc.yellow(makePrintable(`${name || "a call"} ${JSON.stringify(args)}`));
  const shown = result.length > MOST_SHOWN ? `${result.slice(0, MOST_SHOWN)} ...` : result;
  const answer = makePrintable(shown).replaceAll("\n", "\n    ");
  return `  ${call}\n    ${failure ? pc.red(answer) : pc.cyan(answer)}`;
}

/** The end of a turn for people; null when there is nothing to report. */
export function describeEnd({ finishReason }: ChatTurn, { used, size }: { used: number; size: number }): string | null {
  switch (finishReason) {
    case "aborted":
      return "stopped; it goes on from here";
    case "length":
      return "cut at --max-tokens";
    case "turns":
      return "stopped: it went on calling tools";
    case "context":
      return `cut: the conversation fills its context, ${used} of ${size} tokens; /undo takes back, /reset starts again, --context gives more room`;
    case "stop":
      return null;
  }
}
