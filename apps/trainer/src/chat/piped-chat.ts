import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { ConfigError } from "@cria/core";
import { makePrintable } from "../terminal/printable-text.js";
import { chatCommands, readInput, runChatCommand } from "./chat-commands.js";
import { describeCall, describeEnd } from "./describe-turn.js";
import type { ChatTurn, InteractiveChat } from "./interactive-chat.js";

export interface PipedChatOptions {
  input: Readable;
  /** Takes the answers: text as it is sampled, or with `json` one object per line. */
  write: (text: string) => void;
  json: boolean;
  signal?: AbortSignal;
}

/**
 * A conversation for scripts: one message per line; empty lines are skipped.
 * @throws the signal's reason when it aborts.
 */
export async function chatByLines(session: InteractiveChat, options: PipedChatOptions): Promise<void> {
  const { input, write, json, signal } = options;
  const print = (value: object) => write(`${JSON.stringify(value)}\n`);
  const lines = createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY });
  const stop = () => lines.close();
  signal?.addEventListener("abort", stop, { once: true });
  try {
    for await (const line of lines) {
      if (line.trim() === "") continue;
      const read = readInput(line);
      if (read.kind === "unknown")
        throw refuseLine(
          "names no command",
          line,
          `a message, or one of ${listCommands()}`,
          `write /${line.trim()} to send it as a message`,
        );
      if (read.kind === "command" && read.name === "quit") return;
      if (read.kind === "command" && read.name !== "retry") {
        const text = await runChatCommand(session, read.name, read.argument);
        if (json) print({ command: read.name, text });
        else write(`${makePrintable(text)}\n`);
        continue;
      }
      const listener = json ? {} : makeListener(write);
      const turn =
        read.kind === "message"
          ? await session.say(read.text, listener, signal)
          : await session.retry(listener, signal);
      if (!turn) throw refuseLine("has no answer to repeat", line, "a message before /retry", "begin with a message");
      if (json) print(describeTurn(turn, session));
      else {
        const end = describeEnd(turn, session.context);
        write(end ? `\n[${end}]\n` : "\n");
      }
      signal?.throwIfAborted();
    }
    signal?.throwIfAborted();
  } finally {
    signal?.removeEventListener("abort", stop);
    lines.close();
  }
}

function makeListener(write: (text: string) => void) {
  return {
    onText: (text: string) => write(makePrintable(text)),
    onCall: (call: Parameters<typeof describeCall>[0]) => write(`\n${describeCall(call)}\n`),
  };
}

function describeTurn({ finishReason, ...turn }: ChatTurn, { context, seed }: InteractiveChat): object {
  return { ...turn, finish_reason: finishReason, context, seed };
}

function refuseLine(problem: string, line: string, expected: string, remedy: string): ConfigError {
  return new ConfigError(problem, {
    code: "config/bad-argument",
    subject: "a line of the input",
    expected,
    received: line.trim(),
    remedy,
  });
}

const listCommands = () =>
  Object.keys(chatCommands)
    .map((name) => `/${name}`)
    .join(", ");
