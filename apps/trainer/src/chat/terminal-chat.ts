import { createInterface } from "node:readline";
import { Writable } from "node:stream";
import type { ReadStream, WriteStream } from "node:tty";
import { CriaError } from "@cria/core";
import { colors as pc } from "../terminal/colors.js";
import { makePrintable } from "../terminal/printable-text.js";
import { type ChatCommand, type ChatInput, readInput, runChatCommand } from "./chat-commands.js";
import { describeCall, describeEnd } from "./describe-turn.js";
import type { ChatListener, ChatTurn, InteractiveChat } from "./interactive-chat.js";

export interface TerminalChatOptions {
  input: Pick<ReadStream, "isTTY"> & NodeJS.ReadableStream;
  output: Pick<WriteStream, "columns"> & NodeJS.WritableStream;
  /** Ends the conversation, as closing the terminal does. */
  signal?: AbortSignal;
}

const CTRL_C = 130;

/**
 * A conversation in a terminal: tokens as they are sampled, calls of tools with their answers, commands. Ctrl-C stops
 * an answer; a second one, one at the prompt, or Ctrl-D ends the conversation.
 * @returns the exit code.
 */
export async function chatInTerminal(session: InteractiveChat, options: TerminalChatOptions): Promise<number> {
  const { output, signal } = options;
  const screen = new Screen(output);
  const reader = createInterface({ input: options.input, output: screen, terminal: true, prompt: pc.bold("> ") });
  const typed: string[] = [];
  let awaken: () => void = () => undefined;
  let isOpen = true;
  let exitCode = 0;
  let answering: AbortController | null = null;
  const end = (code: number) => {
    exitCode = code;
    answering?.abort();
    reader.close();
  };
  const leave = () => end(0);
  signal?.addEventListener("abort", leave, { once: true });
  reader.on("line", (line) => {
    typed.push(line);
    awaken();
  });
  reader.on("close", () => {
    isOpen = false;
    answering?.abort();
    awaken();
  });
  reader.on("SIGINT", () => {
    if (answering && !answering.signal.aborted) answering.abort();
    else end(CTRL_C);
  });
  /** The next typed line; null: the terminal is closed. */
  const read = async (): Promise<string | null> => {
    let text = "";
    for (;;) {
      if (typed.length === 0 && isOpen) {
        screen.isMuted = false;
        reader.setPrompt(pc.bold(text === "" ? "> " : ". "));
        // Keeps text that was typed during the answer.
        reader.prompt(true);
        await new Promise<void>((resolve) => {
          awaken = resolve;
        });
        screen.isMuted = true;
      }
      const line = typed.shift();
      if (line === undefined) return null;
      if (!line.endsWith("\\")) return text + line;
      text += `${line.slice(0, -1)}\n`;
    }
  };
  /** Prints an error of one message or command, which does not end the conversation. */
  const tell = (error: unknown): void => {
    if (!(error instanceof CriaError)) throw error;
    output.write(`${pc.red("error")} ${makePrintable(error.message)}\n`);
  };
  const answer = async (given: ChatInput & { kind: "message" | "command" }): Promise<void> => {
    answering = new AbortController();
    const printer = new TurnPrinter((text) => output.write(text));
    try {
      const turn =
        given.kind === "message"
          ? await session.say(given.text, printer, answering.signal)
          : await session.retry(printer, answering.signal);
      if (turn) printer.finish(turn, session.context);
      else output.write("there is no message yet\n");
    } catch (error) {
      if (error instanceof CriaError) printer.startLine();
      tell(error);
    } finally {
      answering = null;
    }
  };
  const command = async (name: ChatCommand, argument: string): Promise<void> => {
    try {
      output.write(`${makePrintable(await runChatCommand(session, name, argument))}\n`);
    } catch (error) {
      tell(error);
    }
  };
  try {
    for (let line = await read(); line !== null; line = isOpen ? await read() : null) {
      if (line.trim() === "") continue;
      const given = readInput(line);
      if (given.kind === "unknown") output.write(`${pc.yellow(makePrintable(given.text))}\n`);
      else if (given.kind === "message" || given.name === "retry") await answer(given);
      else if (given.name === "quit") break;
      else await command(given.name, given.argument);
    }
    // After Ctrl-D and Ctrl-C the cursor is still on the prompt's line.
    if (!isOpen) output.write("\n");
    return exitCode;
  } finally {
    signal?.removeEventListener("abort", leave);
    reader.close();
  }
}

/** Prints a turn as it happens. */
class TurnPrinter implements ChatListener {
  private isAtStart = true;

  constructor(private readonly write: (text: string) => void) {}

  onText = (text: string): void => {
    if (text === "") return;
    this.write(makePrintable(text));
    this.isAtStart = text.endsWith("\n");
  };

  onCall = (call: Parameters<typeof describeCall>[0]): void => {
    this.startLine();
    this.write(`${describeCall(call)}\n`);
  };

  finish(turn: ChatTurn, context: { used: number; size: number }): void {
    this.startLine();
    const end = describeEnd(turn, context);
    if (end) this.write(`${pc.yellow(end)}\n`);
    const { sampled } = turn.tokens;
    const speed = turn.seconds > 0 ? ` · ${(sampled / turn.seconds).toFixed(0)} tok/s` : "";
    this.write(`${pc.dim(`${sampled} tokens${speed} · context ${context.used}/${context.size}`)}\n`);
  }

  startLine(): void {
    if (!this.isAtStart) this.write("\n");
    this.isAtStart = true;
  }
}

/** The terminal as readline sees it, which hides text that is typed during an answer. */
class Screen extends Writable {
  isMuted = true;

  constructor(private readonly terminal: TerminalChatOptions["output"]) {
    super();
    terminal.on("resize", () => this.emit("resize"));
  }

  get columns(): number {
    return this.terminal.columns;
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    if (!this.isMuted) this.terminal.write(chunk);
    done();
  }
}
