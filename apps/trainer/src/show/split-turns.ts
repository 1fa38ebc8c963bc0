import { type ChatMessage, contentText, type ImageRecord, listImages } from "@cria/core";
import { showContent } from "@cria/core/internal";
import type { DumpLine, DumpTurn } from "@cria/records";

/** Origin of a piece of a message: sampled and trained, sampled only, or from others. */
export type Origin = "trained" | "sampled" | "given";

export interface ShownMessage {
  role: ChatMessage["role"];
  /** Speaker; for a tool's answer the tool's name. */
  name?: string;
  pieces: { origin: Origin; text: string }[];
  /** The images that its text names, in their order. */
  images: ImageRecord[];
  /** Kind of a failed call's answer. */
  failure?: string;
  /** Step rewards of the turn that ends here, or of its consequences. */
  rewards: { from: "tool" | "turn"; value: number }[];
}

/** A conversation's messages with the dump's knowledge of their tokens. */
export function splitTurns(line: DumpLine): ShownMessage[] {
  const said = line.messages.slice(line.prompt_messages);
  const shown = line.messages.slice(0, line.prompt_messages).map((message) => describe(message, "given"));
  const turns = matchTurns(line.turns, said);
  const wasTrained = line.response_mask.includes(1);
  said.forEach((message, i) => {
    const spoken = message.role === "assistant";
    const entry = describe(message, spoken ? (wasTrained ? "trained" : "sampled") : "given");
    const { turn, failure } = turns?.[i] ?? {};
    if (turn && spoken) {
      const pieces = readPieces(line, turn);
      if (pieces.length > 0) entry.pieces = pieces;
      entry.rewards = findRewards(line, turn);
    }
    if (failure) entry.failure = failure;
    // Older dumps do not record which answers are errors; those of the tool agent loop begin so.
    else if (!turns && message.role === "tool" && /^error: /.test(contentText(message.content)))
      entry.failure = "error";
    shown.push(entry);
  });
  return shown;
}

function describe({ role, name, content }: ChatMessage, origin: Origin): ShownMessage {
  return {
    role,
    ...(role === "tool" && name ? { name } : {}),
    pieces: [{ origin, text: showContent(content) }],
    images: listImages(content).flatMap(({ image }) => ("hash" in image ? image : [])),
    rewards: [],
  };
}

/** The turn of each message: a turn of tools has a message for each call. Null when they do not match. */
function matchTurns(
  turns: readonly DumpTurn[],
  messages: readonly ChatMessage[],
): { turn: DumpTurn; failure?: string | null }[] | null {
  const matched = turns.flatMap((turn) =>
    turn.role === "tool" && turn.failures ? turn.failures.map((failure) => ({ turn, failure })) : [{ turn }],
  );
  const fits = matched.length === messages.length && matched.every(({ turn }, i) => turn.role === messages[i]!.role);
  return fits ? matched : null;
}

/** The text of a sampled turn, cut where its mask changes. */
function readPieces(line: DumpLine, turn: DumpTurn): ShownMessage["pieces"] {
  const pieces: ShownMessage["pieces"] = [];
  for (const span of line.spans) {
    if (span.start < turn.start || span.start >= turn.end) continue;
    const origin: Origin = span.mask === 1 ? "trained" : "sampled";
    const last = pieces.at(-1);
    if (last?.origin === origin) last.text += span.text;
    else pieces.push({ origin, text: span.text });
  }
  return pieces;
}

function findRewards(line: DumpLine, { start, end }: DumpTurn): ShownMessage["rewards"] {
  const within = ({ token_index }: { token_index: number }) => token_index >= start && token_index < end;
  return [
    ...line.tool_rewards.filter(within).map(({ value }) => ({ from: "tool" as const, value })),
    ...line.turn_scores.filter(within).map(({ value }) => ({ from: "turn" as const, value })),
  ];
}
