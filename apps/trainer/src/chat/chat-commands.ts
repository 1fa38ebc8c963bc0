import { findNearest, showContent } from "@cria/core/internal";
import { describeImage } from "./chat-images.js";
import type { InteractiveChat } from "./interactive-chat.js";

/** Commands that a user may type instead of a message. */
export const chatCommands = {
  help: "list the commands",
  reset: "start the conversation again",
  undo: "take back the last message and its answer",
  retry: "another answer to the last message",
  image: "attach an image to the next message: /image cat.png; repeat it for more; /image - removes them",
  tools: "the tools, with their parameters",
  system: "show the system message; /system <text> sets another one and starts again, /system - removes it",
  quit: "end (also Ctrl-D)",
} as const;

export type ChatCommand = keyof typeof chatCommands;

/** A line that the user typed. */
export type ChatInput =
  | { kind: "message"; text: string }
  | { kind: "command"; name: ChatCommand; argument: string }
  | { kind: "unknown"; text: string };

/** `/name` is a command, `//text` the message `/text`. */
export function readInput(line: string): ChatInput {
  if (line.startsWith("//")) return { kind: "message", text: line.slice(1) };
  const match = /^\/(\w*)(?:\s+([\s\S]*))?$/.exec(line.trim());
  if (!match) return { kind: "message", text: line };
  const name = match[1] === "exit" ? "quit" : match[1]!;
  if (Object.hasOwn(chatCommands, name))
    return { kind: "command", name: name as ChatCommand, argument: match[2]?.trim() ?? "" };
  const nearest = findNearest(name, Object.keys(chatCommands));
  const advice = nearest ? `perhaps /${nearest}` : "/help lists them";
  return { kind: "unknown", text: `/${name} is not a command: ${advice}; //${name} sends it to the model` };
}

/**
 * Runs a command that makes no answer.
 * @returns the text to print; it may contain text of tools.
 */
export async function runChatCommand(session: InteractiveChat, name: ChatCommand, argument: string): Promise<string> {
  switch (name) {
    case "reset":
      await session.reset();
      return "the conversation starts again";
    case "undo": {
      const message = session.undo();
      return message === null ? "there is nothing to take back" : `taken back: ${showContent(message)}`;
    }
    case "image":
      return attachImage(session, argument);
    case "tools":
      return session.schemas.length === 0 ? "there are no tools: --tools tools.yaml" : listTools(session);
    case "system":
      if (argument === "") return session.system ?? "there is no system message";
      await session.reset(argument === "-" ? null : argument);
      return "the conversation starts again, with that system message";
    case "help":
      return Object.entries(chatCommands)
        .map(([command, meaning]) => `/${command.padEnd(7)} ${meaning}`)
        .concat("Ctrl-C   stops an answer; at the prompt it ends", "a line that ends with \\ continues in the next")
        .join("\n");
    default:
      return "";
  }
}

async function attachImage({ images }: InteractiveChat, path: string): Promise<string> {
  if (path === "") return "name a file: /image cat.png";
  if (path === "-") {
    images.clear();
    return "the next message has no image";
  }
  const { image, tokens } = await images.attach(path);
  const count = images.waiting === 1 ? "" : `, ${images.waiting} images in all`;
  return `${describeImage(image, tokens)}: it precedes your next message${count}`;
}

function listTools({ schemas }: InteractiveChat): string {
  return schemas
    .map(({ function: { name, description, parameters } }) =>
      [`${name}: ${description ?? "no description"}`, `  ${JSON.stringify(parameters)}`].join("\n"),
    )
    .join("\n");
}
