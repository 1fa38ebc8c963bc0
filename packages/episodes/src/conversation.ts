import type { ChatMessage, GenerateResult, StepReward, ToolSchema, TurnRecord } from "@cria/core";
import { isTaught, type LaidOutGraph, type LayOutOptions, layOutGraph } from "./lay-out-graph.js";
import {
  type AnswerNode,
  countTokens,
  type InputNode,
  isAnswer,
  joinTokens,
  listPath,
  MessageGraph,
  type Said,
} from "./message-graph.js";
import { now } from "./now.js";
import type { ReadTurn } from "./read-turn.js";
import { formAnswer } from "./template-messages.js";
import { structureTurn, type TurnForm } from "./turn-form.js";

/** A reward for an answer. Its token is known only at the end, because later turns may rewrite earlier ones. */
export interface EarnedReward {
  value: number;
  answer: AnswerNode;
}

/** Start and end of a turn, in milliseconds since 1970. */
type Spent = Pick<TurnRecord, "startedAt" | "endedAt">;

const justNow = (): Spent => ({ startedAt: now(), endedAt: now() });

export type ConversationMasks = Omit<LayOutOptions, "credit">;

/** An episode of one conversation: a single path through the message graph, with a count of its tokens. */
export class Conversation {
  private readonly graph = new MessageGraph();
  private end: InputNode | AnswerNode;
  private length: number;
  private prompt: number;

  /** @param budget maximum number of tokens after the prompt. */
  constructor(
    prompt: { messages: readonly ChatMessage[]; tools: readonly ToolSchema[]; tokenIds: Int32Array },
    private readonly budget: number,
    private readonly masks: ConversationMasks = { trainOnConstrained: true, trainOnToolCalls: true },
  ) {
    this.end = this.graph.begin(prompt.messages, prompt.tools, prompt.tokenIds);
    this.length = this.prompt = prompt.tokenIds.length;
  }

  /** Number of tokens so far, prompt included. */
  get tokenCount(): number {
    return this.length;
  }

  /** All tokens so far, prompt included. */
  get tokenIds(): Int32Array {
    return joinTokens(this.end);
  }

  /** Messages so far, prompt included; answers as sampled text. */
  get messages(): ChatMessage[] {
    return this.show("text");
  }

  /** Messages so far in the form that templates take. */
  show(form: TurnForm): ChatMessage[] {
    return listPath(this.end).flatMap((node) => (isAnswer(node) ? [formAnswer(node, form)] : node.messages));
  }

  /** Current node, for `goBack`. */
  get place(): InputNode | AnswerNode {
    return this.end;
  }

  /** Returns to an earlier node and continues from there, as if nothing had followed it. */
  goBack(place: InputNode | AnswerNode): void {
    this.end = place;
    this.length = countTokens(place);
    if (isAnswer(place)) place.inputs.clear();
    else place.answers.clear();
  }

  /** Number of tokens left in the budget. */
  get remaining(): number {
    return this.budget - (this.length - this.prompt);
  }

  /** True if the last answer has its end-of-turn token; else that token is added with the next message, mask 0. */
  get ended(): boolean {
    return !isAnswer(this.end) || this.end.said!.ended;
  }

  /** Appends an answer. @param form form of the answer in templates (`show`). */
  say(
    turn: Pick<GenerateResult, "tokenIds" | "logprobs" | "finishReason" | "policyVersion" | "sampledBy">,
    read: ReadTurn,
    when?: Spent,
    form: TurnForm = "text",
  ): AnswerNode {
    const { tokenIds, logprobs, finishReason, policyVersion, sampledBy } = turn;
    const { text, parsed, calls } = read;
    const said: Said = {
      ...(form === "structured"
        ? { message: structureTurn(parsed && { ...parsed, calls }, text), text }
        : { message: { role: "assistant", content: text } }),
      finishReason,
      tokenIds,
      logprobs,
      ...(read.span ? { calls: read.span } : {}),
      ended: read.end === "ended",
      ...(policyVersion === undefined ? {} : { policyVersion }),
      ...(sampledBy === undefined ? {} : { sampledBy }),
      ...(when ?? justNow()),
    };
    this.end = this.graph.say(this.end as InputNode, said);
    this.length += tokenIds.length;
    return this.end;
  }

  /** Appends a reply to the last answer. */
  hear(
    messages: readonly ChatMessage[],
    tokenIds: Int32Array,
    when: Spent & Pick<TurnRecord, "failures" | "state"> = justNow(),
  ): void {
    this.end = this.graph.reply(this.end as AnswerNode, messages, tokenIds, when);
    this.length += tokenIds.length;
    // A rewritten conversation may be shorter than its prompt was.
    this.prompt = Math.min(this.prompt, this.length);
  }

  /**
   * Removes all tokens from index `start` (prompt included), to be replaced. @returns the number of trained tokens
   * among them.
   */
  cutFrom(start: number): number {
    let at = 0;
    let trained = 0;
    for (const node of listPath(this.end)) {
      const size = (isAnswer(node) ? node.said!.tokenIds : node.tokenIds!).length;
      const keep = Math.min(Math.max(0, start - at), size);
      at += size;
      if (keep === size) continue;
      if (isAnswer(node)) trained += this.cutAnswer(node.said!, keep);
      else node.tokenIds = node.tokenIds!.subarray(0, keep);
    }
    this.length = start;
    return trained;
  }

  private cutAnswer(said: Said, keep: number): number {
    let trained = 0;
    for (let i = keep; i < said.tokenIds.length; i++) if (isTaught(said, i, this.masks)) trained++;
    said.tokenIds = said.tokenIds.subarray(0, keep);
    said.logprobs = said.logprobs.subarray(0, keep);
    if (said.constrained) said.constrained = said.constrained.subarray(0, keep);
    if (said.calls && said.calls.end > keep) said.calls = { ...said.calls, start: keep, end: keep };
    return trained;
  }

  /** Lays the conversation out for training. */
  layOut(): LaidOutGraph {
    const laidOut = layOutGraph(this.graph, { ...this.masks, credit: "all_branches" })!;
    return { ...laidOut, promptLength: this.prompt, messages: this.messages };
  }
}

/**
 * Places rewards on the last trained token of their answer, or the nearest trained one. Without any trained token,
 * no rewards are placed. Rewards of answers that another model sampled are not the policy's, and are left out.
 */
export function placeRewards(
  rewards: readonly EarnedReward[],
  { responseMask, places }: Pick<LaidOutGraph, "responseMask" | "places">,
): StepReward[] {
  const first = responseMask.indexOf(1);
  if (first < 0) return [];
  const own = rewards.filter(({ answer }) => answer.said?.sampledBy === undefined);
  return own.map(({ value, answer }) => {
    const last = places.get(answer.id)!;
    const before = last >= 0 ? responseMask.lastIndexOf(1, last) : -1;
    return { value, tokenIndex: before >= 0 ? before : first };
  });
}
