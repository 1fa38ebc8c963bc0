import type {
  ChatMessage,
  FinishReason,
  PolicySequence,
  TokenCandidate,
  ToolSchema,
  TurnCall,
  TurnRecord,
} from "@cria/core";
import { hashValue, haveSameIds, haveSameThoughts, keyOfMessage, keyOfTools, PathHash } from "./message-key.js";
import { now } from "./now.js";

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
  /**
   * When others began to say it and had said it, which calls failed, and their name of the state that it shows; left out: it was there
   * when its answer began.
   */
  heard?: Pick<TurnRecord, "startedAt" | "endedAt" | "failures" | "state">;
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
  /** What it was asked by; left out: its agent's loop knows. */
  call?: Pick<TurnCall, "sibling" | "request">;
  /** Holds the path's tokens and their KV, until a next turn takes it. */
  sequence: PolicySequence | null;
}

export interface CallSpan {
  count: number;
  start: number;
  end: number;
}

export interface Said {
  message: ChatMessage;
  /** The turn's text as it was sampled, calls and thoughts included; left out: the message's content. */
  text?: string;
  finishReason: FinishReason;
  tokenIds: Int32Array;
  logprobs: Float32Array;
  constrained?: Uint8Array;
  /** How many tool calls it has, and which of its tokens spell them, `[start, end)`; left out: none. */
  calls?: CallSpan;
  topLogprobs?: TokenCandidate[][];
  /** How many of the tokens are thoughts; left out: nobody counted. */
  reasoningTokens?: number;
  stopString?: string;
  /** Whether the last token ends the turn. */
  ended: boolean;
  /** Left out: the episode's. */
  policyVersion?: number;
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

/** How far a conversation is known. */
interface Known {
  after: AnswerNode | null;
  /** The first message behind that answer. */
  from: number;
  /** Of the input that all messages from there make. */
  id: string;
  /** Whether what they begin with was asked before. */
  isKnownStart: boolean;
}

/**
 * The messages of an episode as trees: an answer is followed by inputs, an input by answers. A conversation that is asked to go on
 * is found by its messages, so that what was sampled is never rendered again.
 */
export class MessageGraph {
  readonly roots = new Map<string, InputNode>();

  /** By id. */
  private readonly answers = new Set<string>();

  /** Inputs that a template prints only as a conversation of their own, by what they would have been called. */
  private readonly moved = new Map<string, InputNode>();

  /** Finds the place of a conversation, made where it is new. @param messages the last one not of the assistant. */
  locate(messages: readonly ChatMessage[], tools: readonly ToolSchema[]): Place {
    const { after, from, id, isKnownStart } = this.follow(null, messages, 0, tools);
    return this.open(after, messages.slice(from), id, isKnownStart, tools);
  }

  /**
   * How far a conversation is known, of which all up to `from` is. What others put into the model's mouth is part of an input, so each
   * message of the assistant may be the answer: the way that leads furthest is taken.
   */
  private follow(
    after: AnswerNode | null,
    messages: readonly ChatMessage[],
    from: number,
    tools: readonly ToolSchema[],
  ): Known {
    const inputs = this.inputsOf(after);
    const lengths = new Set([...inputs.values(), ...this.moved.values()].map((input) => input.messages.length));
    const longest = Math.max(0, ...lengths);
    const path = hashPath(after, tools);
    let isKnownStart = false;
    let furthest: Known | null = null;
    for (const [i, message] of messages.entries()) {
      if (i < from) continue;
      if (furthest && i > from + longest) break;
      // A moved input has the messages of all its conversation.
      if (message.role === "assistant" && (lengths.has(i - from) || lengths.has(i))) {
        const input = this.find(inputs, path.end());
        isKnownStart ||= input !== undefined;
        const answer = input && findAnswer(input, message);
        const known = answer && this.follow(answer, messages, i + 1, tools);
        if (known && known.from > (furthest?.from ?? 0)) furthest = known;
      }
      path.add(keyOfMessage(message));
    }
    return furthest ?? { after, from, id: path.end(), isKnownStart };
  }

  /**
   * The place of what was said to an answer, made where it is new; null: of a conversation that continues nothing. No answer is looked
   * for among the messages.
   */
  openBehind(parent: AnswerNode | null, messages: readonly ChatMessage[], tools: readonly ToolSchema[]): Place {
    const path = hashPath(parent, tools);
    for (const message of messages) path.add(keyOfMessage(message));
    return this.open(parent, messages, path.end(), true, tools);
  }

  /** Begins a conversation whose agent knows its place: nobody looks it up by its messages. */
  begin(messages: readonly ChatMessage[], tools: readonly ToolSchema[], tokenIds: Int32Array): InputNode {
    const at = now();
    const heard = { startedAt: at, endedAt: at };
    return this.addInput(this.roots, { id: String(this.roots.size), parent: null, messages, tools, tokenIds, heard });
  }

  /** What others say to an answer, of a conversation that was begun by `begin`. */
  reply(
    parent: AnswerNode,
    messages: readonly ChatMessage[],
    tokenIds: Int32Array,
    heard: InputNode["heard"],
  ): InputNode {
    const id = `${parent.id}/${parent.inputs.size}`;
    return this.addInput(parent.inputs, { id, parent, messages, tools: parent.parent.tools, tokenIds, heard });
  }

  /** An answer to an input of a conversation that was begun by `begin`. */
  say(parent: InputNode, said: Said): AnswerNode {
    const answers = parent.answers.get("") ?? [];
    parent.answers.set("", answers);
    const id = `${parent.id}/${answers.length}`;
    const answer = makeAnswer(id, parent);
    Object.assign(answer, { state: "done", said, order: this.answers.size });
    answers.push(answer);
    this.answers.add(id);
    return answer;
  }

  private addInput(inputs: Map<string, InputNode>, given: Omit<InputNode, "answers">): InputNode {
    const input: InputNode = { ...given, answers: new Map() };
    inputs.set(input.id, input);
    return input;
  }

  /** Removes an input that could not be rendered. */
  remove({ parent, id }: InputNode): void {
    this.inputsOf(parent).delete(id);
  }

  /** Has a removed input found in the place of another: that of a root, whose conversation then goes on from there. */
  move({ id }: InputNode, to: InputNode): void {
    this.moved.set(id, to);
  }

  /**
   * The answer that such a question gets: one that is not whole yet, or a new one beside those that are.
   * @param asked what was asked of it beside the messages: questions of different kinds are no retries of each other.
   * @param isWaitedFor whether somebody waits for an answer that is being made.
   * @param separate whether such an answer is somebody else's.
   */
  claim(
    input: InputNode,
    asked: string,
    isWaitedFor: (answer: AnswerNode) => boolean,
    separate = true,
  ): { answer: AnswerNode; sibling: number } {
    const answers = input.answers.get(asked) ?? [];
    // Who asks again wants the answer that was lost rather than one that others wait for.
    const left = answers.findIndex((answer) => answer.state !== "done" && !isWaitedFor(answer));
    const open = left < 0 && !separate ? answers.findIndex(({ state }) => state !== "done") : left;
    const sibling = open >= 0 ? open : answers.length;
    return { answer: this.answerAt(input, asked, sibling), sibling };
  }

  /** The answer of this number to a question; those before it need not have been made. */
  answerAt(input: InputNode, asked: string, sibling: number): AnswerNode {
    const answers = input.answers.get(asked) ?? [];
    input.answers.set(asked, answers);
    while (answers.length <= sibling) {
      const id = hashValue(input.id, asked, answers.length);
      answers.push(makeAnswer(id, input));
      this.answers.add(id);
    }
    return answers[sibling]!;
  }

  /** @param isKnownStart whether what the messages begin with was asked before. */
  private open(
    parent: AnswerNode | null,
    messages: readonly ChatMessage[],
    id: string,
    isKnownStart: boolean,
    tools: readonly ToolSchema[],
  ): Place {
    const inputs = this.inputsOf(parent);
    const known = this.find(inputs, id);
    if (known) return { input: known, kind: "known" };
    const input = this.addInput(inputs, { id, parent, messages, tools, tokenIds: null });
    if (parent === null && !isKnownStart) return { input, kind: "root" };
    return { input, kind: messages.some(({ role }) => role === "assistant") ? "branch" : "next" };
  }

  hasAnswer(id: string): boolean {
    return this.answers.has(id);
  }

  private inputsOf(parent: AnswerNode | null): Map<string, InputNode> {
    return parent?.inputs ?? this.roots;
  }

  private find(inputs: ReadonlyMap<string, InputNode>, id: string): InputNode | undefined {
    return inputs.get(id) ?? this.moved.get(id);
  }
}

function makeAnswer(id: string, parent: InputNode): AnswerNode {
  return { id, parent, state: "new", said: null, order: -1, inputs: new Map(), sequence: null };
}

/** The path to a node, from its root on. */
export function listPath(input: InputNode | AnswerNode): (InputNode | AnswerNode)[] {
  const path: (InputNode | AnswerNode)[] = [];
  for (let node: InputNode | AnswerNode | null = input; node; node = node.parent) path.push(node);
  return path.reverse();
}

/** What was said and heard up to the end of a node. */
export function listMessages(node: InputNode | AnswerNode): ChatMessage[] {
  return listPath(node).flatMap((at) => (isAnswer(at) ? [at.said!.message] : [...at.messages]));
}

/** Tokens of the conversation up to the end of a node, rendered and sampled. */
export function joinTokens(node: InputNode | AnswerNode): Int32Array {
  const parts = listTokens(node);
  const joined = new Int32Array(sumLengths(parts));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

export function countTokens(node: InputNode | AnswerNode): number {
  return sumLengths(listTokens(node));
}

function listTokens(end: InputNode | AnswerNode): Int32Array[] {
  return listPath(end).map((node) => (isAnswer(node) ? node.said!.tokenIds : node.tokenIds!));
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
function hashPath(parent: AnswerNode | null, tools: readonly ToolSchema[]): PathHash {
  return new PathHash(parent?.id ?? null, parent ? null : keyOfTools(tools));
}

/** Siblings may say the same: then ids of calls tell which is meant, and thoughts where they are sent back. */
function findAnswer(input: InputNode, message: ChatMessage): AnswerNode | undefined {
  const key = keyOfMessage(message);
  const alike = listAnswers(input).filter(({ state, said }) => state === "done" && keyOfMessage(said!.message) === key);
  const sameIds = alike.filter(({ said }) => haveSameIds(said!.message, message));
  const meant = sameIds.length > 0 ? sameIds : alike;
  return meant.find(({ said }) => haveSameThoughts(said!.message, message)) ?? meant[0];
}
