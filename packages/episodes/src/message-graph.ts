import type {
  ChatMessage,
  FinishReason,
  GenerateResult,
  PolicySequence,
  SampledTokens,
  ToolSchema,
  TurnCall,
  TurnRecord,
} from "@cria/core";
import { hashValue, haveSameIds, haveSameThoughts, keyOfMessage, keyOfTools, PathHash } from "./message-key.js";
import { now } from "./now.js";

/** Messages of others between two answers, or before the first. */
export interface InputNode {
  /** Hash of the path to this node: the same in whatever order calls arrive. */
  id: string;
  /** null: root of a conversation. */
  parent: AnswerNode | null;
  messages: readonly ChatMessage[];
  /** Tools of the conversation, described at its root. */
  tools: readonly ToolSchema[];
  /** Tokens that the messages add, generation prompt included; null: not rendered yet. */
  tokenIds: Int32Array | null;
  /** Answers by request key; siblings in order. */
  answers: Map<string, AnswerNode[]>;
  /**
   * Start and end of the messages, failed calls, and the tools' name of the environment's state; left out: the
   * messages were there when their answer began.
   */
  heard?: Pick<TurnRecord, "startedAt" | "endedAt" | "failures" | "state">;
}

/** An answer of the policy, with its tokens as they were sampled. */
export interface AnswerNode {
  id: string;
  parent: InputNode;
  /** cut: failed or abandoned by all callers. done: delivered to at least one. */
  state: "new" | "pending" | "done" | "cut";
  said: Said | null;
  /** Position in the order of delivery among all answers of the graph. */
  order: number;
  inputs: Map<string, InputNode>;
  /** The request; left out: the agent's loop determines it. */
  call?: Pick<TurnCall, "sibling" | "request">;
  /** Holds the path's tokens and KV, until a next turn takes it. */
  sequence: PolicySequence | null;
}

export interface CallSpan {
  count: number;
  start: number;
  end: number;
}

/** An answer's message, and its tokens as they were sampled. */
export interface Said extends SampledTokens, Pick<GenerateResult, "sampledBy"> {
  message: ChatMessage;
  /** Sampled text of the turn, calls and thoughts included; left out: equal to the message's content. */
  text?: string;
  finishReason: FinishReason;
  /** Number of tool calls, and the token range `[start, end)` that spells them; left out: none. */
  calls?: CallSpan;
  /** Number of thought tokens; left out: not counted. */
  reasoningTokens?: number;
  /** True if the last token ends the turn. */
  ended: boolean;
  /** Number of weight updates the policy had had; left out: the episode's. */
  policyVersion?: number;
  /** Milliseconds since 1970. */
  startedAt: number;
  endedAt: number;
}

/** Place of a request in the graph: the node that it continues or opens. */
export interface Place {
  input: InputNode;
  /**
   * known: requested before; next: continues an answer; branch: contains assistant messages that were not sampled;
   * root: unknown.
   */
  kind: "known" | "next" | "branch" | "root";
}

/** Longest known beginning of a conversation. */
interface Known {
  after: AnswerNode | null;
  /** Index of the first message after that answer. */
  from: number;
  /** Id of the input made of all messages from there. */
  id: string;
  /** True if the messages begin like an earlier request. */
  isKnownStart: boolean;
}

/**
 * The messages of an episode as trees: answers have inputs as children, inputs have answers. A continued
 * conversation is found by its messages, so that sampled text is never rendered again.
 */
export class MessageGraph {
  readonly roots = new Map<string, InputNode>();

  /** Ids of all answers. */
  private readonly answers = new Set<string>();

  /** Inputs that the template prints only as separate conversations, by the id of their original place. */
  private readonly moved = new Map<string, InputNode>();

  /**
   * Finds or creates the place of a conversation.
   * @param messages the last one is not the assistant's.
   * @param role role of the caller: of answers with equal text it means its own.
   */
  locate(messages: readonly ChatMessage[], tools: readonly ToolSchema[], role?: string): Place {
    const { after, from, id, isKnownStart } = this.follow(null, messages, 0, tools, role);
    return this.open(after, messages.slice(from), id, isKnownStart, tools);
  }

  /**
   * Finds the longest known beginning of a conversation that is known up to `from`. Assistant messages that were not
   * sampled are part of an input, so any assistant message may or may not be an answer: the longest path wins.
   */
  private follow(
    after: AnswerNode | null,
    messages: readonly ChatMessage[],
    from: number,
    tools: readonly ToolSchema[],
    role: string | undefined,
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
      // A moved input holds the messages of its whole conversation.
      if (message.role === "assistant" && (lengths.has(i - from) || lengths.has(i))) {
        const input = this.find(inputs, path.end());
        isKnownStart ||= input !== undefined;
        const answer = input && findAnswer(input, message, role);
        const known = answer && this.follow(answer, messages, i + 1, tools, role);
        if (known && known.from > (furthest?.from ?? 0)) furthest = known;
      }
      path.add(keyOfMessage(message));
    }
    return furthest ?? { after, from, id: path.end(), isKnownStart };
  }

  /**
   * Finds or creates the input that follows `parent` with these messages; null: at the root. The messages are not
   * searched for answers.
   */
  openBehind(parent: AnswerNode | null, messages: readonly ChatMessage[], tools: readonly ToolSchema[]): Place {
    const path = hashPath(parent, tools);
    for (const message of messages) path.add(keyOfMessage(message));
    return this.open(parent, messages, path.end(), true, tools);
  }

  /** Begins a conversation whose agent keeps track of its place, so that it is never looked up by messages. */
  begin(messages: readonly ChatMessage[], tools: readonly ToolSchema[], tokenIds: Int32Array): InputNode {
    const at = now();
    const heard = { startedAt: at, endedAt: at };
    return this.addInput(this.roots, { id: String(this.roots.size), parent: null, messages, tools, tokenIds, heard });
  }

  /** Adds a reply to an answer, in a conversation started by `begin`. */
  reply(
    parent: AnswerNode,
    messages: readonly ChatMessage[],
    tokenIds: Int32Array,
    heard: InputNode["heard"],
  ): InputNode {
    const id = `${parent.id}/${parent.inputs.size}`;
    return this.addInput(parent.inputs, { id, parent, messages, tools: parent.parent.tools, tokenIds, heard });
  }

  /** Adds an answer to an input, in a conversation started by `begin`. */
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

  /** Removes an input that cannot be rendered. */
  remove({ parent, id }: InputNode): void {
    this.inputsOf(parent).delete(id);
  }

  /** Redirects a removed input to another one, a root from which the conversation continues. */
  move({ id }: InputNode, to: InputNode): void {
    this.moved.set(id, to);
  }

  /**
   * Assigns an answer to a request: an unfinished one, or a new sibling of the finished ones.
   * @param asked key of the request's options: requests with different options never share an answer.
   * @param isWaitedFor true if an unfinished answer still has a caller.
   * @param separate true if an answer that has a caller belongs to another request.
   */
  claim(
    input: InputNode,
    asked: string,
    isWaitedFor: (answer: AnswerNode) => boolean,
    separate = true,
  ): { answer: AnswerNode; sibling: number } {
    const answers = input.answers.get(asked) ?? [];
    // Prefer an abandoned answer to one that others wait for: this is most likely a retry.
    const left = answers.findIndex((answer) => answer.state !== "done" && !isWaitedFor(answer));
    const open = left < 0 && !separate ? answers.findIndex(({ state }) => state !== "done") : left;
    const sibling = open >= 0 ? open : answers.length;
    return { answer: this.answerAt(input, asked, sibling), sibling };
  }

  /** The answer with this sibling index; earlier siblings need not be generated yet. */
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

  /** @param isKnownStart true if the messages begin like an earlier request. */
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

/** Nodes from the root to this one. */
export function listPath(input: InputNode | AnswerNode): (InputNode | AnswerNode)[] {
  const path: (InputNode | AnswerNode)[] = [];
  for (let node: InputNode | AnswerNode | null = input; node; node = node.parent) path.push(node);
  return path.reverse();
}

/** Messages of the conversation up to and including a node. */
export function listMessages(node: InputNode | AnswerNode): ChatMessage[] {
  return listPath(node).flatMap((at) => (isAnswer(at) ? [at.said!.message] : [...at.messages]));
}

/** Tokens of the conversation up to and including a node, rendered and sampled. */
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

/** Only a root's id includes the tools: other tools make another conversation, rendered with them. */
function hashPath(parent: AnswerNode | null, tools: readonly ToolSchema[]): PathHash {
  return new PathHash(parent?.id ?? null, parent ? null : keyOfTools(tools));
}

/** Siblings may have equal texts; then call ids, the role, and thoughts if sent back, tell them apart. */
function findAnswer(input: InputNode, message: ChatMessage, role: string | undefined): AnswerNode | undefined {
  const key = keyOfMessage(message);
  const alike = listAnswers(input).filter(({ state, said }) => state === "done" && keyOfMessage(said!.message) === key);
  const sameIds = alike.filter(({ said }) => haveSameIds(said!.message, message));
  const possible = sameIds.length > 0 ? sameIds : alike;
  const sameRole = possible.filter(({ call }) => call?.request.role === role);
  const meant = sameRole.length > 0 ? sameRole : possible;
  return meant.find(({ said }) => haveSameThoughts(said!.message, message)) ?? meant[0];
}
