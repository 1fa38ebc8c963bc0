import type { ChatMessage, PolicySequence, TokenCandidate, ToolSchema } from "@cria/core";
import type { ChatAnswerMessage } from "./chat-model.js";
import { hashValue, haveSameIds, keyOfMessage, keyOfTools } from "./message-key.js";

/** What others said between two answers, or before the first one. */
export interface InputNode {
  /** A hash of the path to here, so that it is the same in whatever order calls arrive. */
  id: string;
  /** null: it begins a conversation. */
  parent: AnswerNode | null;
  messages: readonly ChatMessage[];
  /** Of the conversation, described where it begins. */
  tools: readonly ToolSchema[];
  /** The tokens that these messages add, the generation prompt included; null: not rendered yet. */
  tokenIds: Int32Array | null;
  /** Answers by what was asked of them, siblings in order. */
  answers: Map<string, AnswerNode[]>;
}

/** What the policy said: tokens as they were sampled. */
export interface AnswerNode {
  id: string;
  parent: InputNode;
  /** cut: it failed, or nobody waited for its end. done: somebody has heard it. */
  state: "new" | "pending" | "done" | "cut";
  said: Said | null;
  /** Among all answers of the graph, by when they were heard. */
  order: number;
  inputs: Map<string, InputNode>;
  /** Holds the path's tokens and their KV, until a next turn takes it. */
  sequence: PolicySequence | null;
}

export interface Said {
  message: ChatAnswerMessage;
  finishReason: "stop" | "length" | "tool_calls";
  tokenIds: Int32Array;
  logprobs: Float32Array;
  constrained?: Uint8Array;
  topLogprobs?: TokenCandidate[][];
  stopString?: string;
  /** Whether the last token ends the turn. */
  ended: boolean;
  policyVersion: number;
  /** Milliseconds since 1970. */
  startedAt: number;
  endedAt: number;
}

/** Where a request belongs: the node that it continues or opens. */
export interface Place {
  input: InputNode;
  /** known: asked before; next: it continues an answer; branch: with words put into the model's mouth; root: unknown. */
  kind: "known" | "next" | "branch" | "root";
}

/**
 * The messages of an episode as trees: an answer is followed by inputs, an input by answers. A conversation that is asked to go on
 * is found by its messages, so that what was sampled is never rendered again.
 */
export class MessageGraph {
  readonly roots = new Map<string, InputNode>();

  /** By id. */
  private readonly answers = new Set<string>();

  /** Finds the place of a conversation, made where it is new. @param messages the last one not of the assistant. */
  locate(messages: readonly ChatMessage[], tools: readonly ToolSchema[]): Place {
    let after: AnswerNode | null = null;
    let from = 0;
    for (;;) {
      const next = findSpeech(messages, from);
      const input = this.find(after, messages.slice(from, next), tools);
      const answer = input && next < messages.length ? findAnswer(input, messages[next]!) : undefined;
      if (!answer) return this.open(after, messages.slice(from), tools, input !== undefined);
      after = answer;
      from = next + 1;
    }
  }

  /** The place of a conversation that continues nothing: as a template prints the whole of it. */
  openRoot(messages: readonly ChatMessage[], tools: readonly ToolSchema[]): Place {
    return this.open(null, messages, tools, true);
  }

  /** Removes an input that could not be rendered. */
  remove({ parent, id }: InputNode): void {
    (parent?.inputs ?? this.roots).delete(id);
  }

  /**
   * The answer that such a question gets: one that is not whole yet, or a new one beside those that are.
   * @param asked what was asked of it beside the messages: questions of different kinds are no retries of each other.
   * @param separate whether an answer that is being made is somebody else's.
   */
  claim(input: InputNode, asked: string, separate = false): { answer: AnswerNode; sibling: number } {
    const answers = input.answers.get(asked) ?? [];
    input.answers.set(asked, answers);
    const open = answers.findIndex(({ state }) => state !== "done" && !(separate && state === "pending"));
    if (open >= 0) return { answer: answers[open]!, sibling: open };
    const sibling = answers.length;
    const id = hashValue(input.id, asked, sibling);
    const answer: AnswerNode = {
      id,
      parent: input,
      state: "new",
      said: null,
      order: -1,
      inputs: new Map(),
      sequence: null,
    };
    answers.push(answer);
    this.answers.add(id);
    return { answer, sibling };
  }

  /** @param isKnownStart whether what the messages begin with was asked before. */
  private open(
    parent: AnswerNode | null,
    messages: readonly ChatMessage[],
    tools: readonly ToolSchema[],
    isKnownStart: boolean,
  ): Place {
    const known = this.find(parent, messages, tools);
    if (known) return { input: known, kind: "known" };
    const id = nameInput(parent, messages, tools);
    const input: InputNode = { id, parent, messages, tools, tokenIds: null, answers: new Map() };
    (parent?.inputs ?? this.roots).set(id, input);
    if (parent === null && !isKnownStart) return { input, kind: "root" };
    return { input, kind: messages.some(({ role }) => role === "assistant") ? "branch" : "next" };
  }

  hasAnswer(id: string): boolean {
    return this.answers.has(id);
  }

  private find(parent: AnswerNode | null, messages: readonly ChatMessage[], tools: readonly ToolSchema[]) {
    return (parent?.inputs ?? this.roots).get(nameInput(parent, messages, tools));
  }
}

/** The path to a node, from its root on. */
export function listPath(input: InputNode): (InputNode | AnswerNode)[] {
  const path: (InputNode | AnswerNode)[] = [];
  for (let node: InputNode | AnswerNode | null = input; node; node = node.parent) path.push(node);
  return path.reverse();
}

/** Tokens of the conversation up to the end of an input, rendered and sampled. */
export function joinTokens(input: InputNode): Int32Array {
  const parts = listTokens(input);
  const joined = new Int32Array(sumLengths(parts));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

export function countTokens(input: InputNode): number {
  return sumLengths(listTokens(input));
}

function listTokens(input: InputNode): Int32Array[] {
  return listPath(input).map((node) => (isAnswer(node) ? node.said!.tokenIds : node.tokenIds!));
}

function sumLengths(parts: readonly Int32Array[]): number {
  return parts.reduce((sum, part) => sum + part.length, 0);
}

export function isAnswer(node: InputNode | AnswerNode): node is AnswerNode {
  return "state" in node;
}

export function listAnswers(input: InputNode): AnswerNode[] {
  return [...input.answers.values()].flat();
}

/** Tools are part of a root alone: other tools make another conversation, whose messages are rendered with these. */
function nameInput(parent: AnswerNode | null, messages: readonly ChatMessage[], tools: readonly ToolSchema[]): string {
  return hashValue(parent?.id ?? null, messages.map(keyOfMessage), parent ? null : keyOfTools(tools));
}

/** Index of the next message of the assistant, or the end. */
function findSpeech(messages: readonly ChatMessage[], from: number): number {
  const found = messages.findIndex(({ role }, i) => i >= from && role === "assistant");
  return found < 0 ? messages.length : found;
}

function findAnswer(input: InputNode, message: ChatMessage): AnswerNode | undefined {
  const key = keyOfMessage(message);
  const alike = listAnswers(input).filter(({ state, said }) => state === "done" && keyOfMessage(said!.message) === key);
  return alike.find(({ said }) => haveSameIds(said!.message, message)) ?? alike[0];
}
