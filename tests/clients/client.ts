import type { Place, Topic } from "./topic.js";

/** A client's view of a conversation with two tools. */
export interface Talk {
  /** The last answer's. */
  text: string;
  /** Calls of each answer that had any, as `writeCall` writes them. */
  calls: string[][];
  /** Tokens of all answers and of their prompts together. */
  usage: { input: number; output: number };
  /** The model's thoughts, if the client shows them. */
  thoughts?: string;
}

/** A failure as the client's user sees it. */
export interface Failure {
  /**
   * By the error's class and the other fields that the client's users check; "other" is none of the client's own
   * errors.
   */
  kind: "wrong request" | "wrong key" | "too long" | "other";
  status: number | undefined;
  message: string;
}

/** Features that each client is tried with. */
export const features = {
  tools: "a conversation of two tools",
  streamed: "the same, streamed",
  parallel: "calls at once",
  usage: "usage",
  thoughts: "thoughts",
  json: "structured output",
  logprobs: "logprobs",
  images: "an image",
  continued: "history kept by the server",
  counting: "tokens counted",
  models: "models listed",
  refused: "a wrong request, in its own error class",
  unauthorized: "a wrong key",
  tooLong: "a conversation that is too long",
  aborted: "an aborted call frees its tokens",
  embedded: "a real model",
};

export type Feature = keyof typeof features;

/** Features that need a separate method. */
type Optional = "json" | "logprobs" | "continued" | "counting" | "models";

/** A client as its users use it. */
export interface Client {
  /** Packages, and how they are used. */
  name: string;
  /** Asks the topic's question, and answers calls of its tools until there are none. */
  talk(place: Place, topic: Topic, stream: boolean): Promise<Talk>;
  /** One answer, without tools. */
  ask(place: Place, question: string, options: { temperature?: number; signal?: AbortSignal }): Promise<string>;
  /** One answer to an image, a PNG file, and a question about it. */
  look(place: Place, image: Uint8Array, question: string): Promise<string>;
  readFailure(error: unknown): Failure;
  /** An object with a city (text) and degrees (number), by the client's way to structured output. */
  json?(place: Place): Promise<unknown>;
  /** Logprobs of one answer, streamed or not. */
  logprobs?(place: Place, stream: boolean): Promise<readonly number[]>;
  /** Asks about the weather, answers only the first calls, and returns the later ones. */
  continued?(place: Place): Promise<string[]>;
  /** Tokens of a question. */
  counting?(place: Place, question: string): Promise<number>;
  models?(place: Place): Promise<string[]>;
  /** Why it has no cell for a feature. */
  lacks: Partial<Record<Optional | "thoughts", string>>;
}

/** The table of the documentation: a cell for each test. */
export function writeTable(clients: readonly Client[]): string {
  const notes: string[] = [];
  const cell = ({ lacks }: Client, feature: Feature) => {
    const reason = lacks[feature as Optional];
    if (reason === undefined) return "yes";
    if (!notes.includes(reason)) notes.push(reason);
    return `– (${notes.indexOf(reason) + 1})`;
  };
  const row = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  const names = clients.map(({ name }) => name);
  const lines = [row(["", ...names]), row(["---", ...names.map(() => ":-:")])];
  for (const [feature, title] of Object.entries(features))
    lines.push(row([title, ...clients.map((client) => cell(client, feature as Feature))]));
  return `${[...lines, "", ...notes.map((note, i) => `${i + 1}. ${note}`)].join("\n")}\n`;
}
