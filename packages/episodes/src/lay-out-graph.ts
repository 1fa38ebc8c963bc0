import type { ToolSchema, Trajectory, TrajectorySegment, TurnCall, TurnRecord } from "@cria/core";
import {
  type AnswerNode,
  type InputNode,
  isAnswer,
  listAnswers,
  listMessages,
  listPath,
  type MessageGraph,
  type Said,
} from "./message-graph.js";

/**
 * Answers of an episode that its reward trains. last_branch: those of the conversation that was answered last.
 * all_branches: all. nodes: all, each credited with the rewards given to it and to its descendants.
 * multi_trajectories: all, each credited with the reward of the conversation that was answered last.
 */
export type BranchCredit = "last_branch" | "all_branches" | "nodes" | "multi_trajectories";

export interface LayOutOptions {
  credit: BranchCredit;
  /** False: tokens from which a grammar removed probability get mask 0. */
  trainOnConstrained: boolean;
  /** False: tokens of tool calls get mask 0. */
  trainOnToolCalls: boolean;
}

/** True if an answer's token is trained on, provided that its answer is. All response masks come from here. */
export function isTaught(
  { constrained, calls, sampledBy }: Said,
  index: number,
  { trainOnConstrained, trainOnToolCalls }: Omit<LayOutOptions, "credit">,
): boolean {
  if (sampledBy !== undefined) return false;
  if (!trainOnConstrained && constrained?.[index]) return false;
  return trainOnToolCalls || calls === undefined || index < calls.start || index >= calls.end;
}

/** The tokens of an episode, each answer once. */
export interface LaidOutGraph
  extends Pick<
    Trajectory,
    "tokenIds" | "promptLength" | "responseMask" | "rolloutLogprobs" | "messages" | "segments" | "finishReason"
  > {
  turns: TurnRecord[];
  /** Tools of the conversation in `messages`. */
  toolSchemas: readonly ToolSchema[];
  /** By answer id: index of its last token, or of the token before it if all of its tokens were replaced. */
  places: Map<string, number>;
  answers: number;
}

/**
 * Lays the episode out for training: each answered conversation from its root on, an answer's tokens before those of
 * its descendants. The order follows from the graph, not from when calls arrived: the first conversation comes first
 * if it was alone; others are sorted by id.
 * @returns null if there is no answer.
 */
export function layOutGraph(graph: MessageGraph, options: LayOutOptions): LaidOutGraph | null {
  const roots = sortRoots([...graph.roots.values()].filter(counts));
  if (roots.length === 0) return null;
  const answers = roots.flatMap(listAnswered);
  const last = findEnd(roots[0]!, answers);
  const lastAnswer = answers.length > 0 ? findLast(answers) : null;
  const taught = options.credit === "last_branch" ? new Set<unknown>(listPath(last)) : null;
  const tokens: number[] = [];
  const mask: number[] = [];
  const logprobs: number[] = [];
  const turns: TurnRecord[] = [];
  const segments: TrajectorySegment[] = [];
  const places = new Map<string, number>();
  const described = new Set<InputNode>();

  const add = (node: InputNode | AnswerNode) => {
    const start = tokens.length;
    if (!isAnswer(node)) {
      for (const id of node.tokenIds!) {
        tokens.push(id);
        mask.push(0);
        logprobs.push(0);
      }
      // The initial prompt is no turn.
      if (node.parent !== null || start > 0) turns.push(describeInput(node, start, tokens.length));
      return;
    }
    const said = node.said!;
    const isCredited = taught?.has(node) ?? true;
    said.tokenIds.forEach((id, i) => {
      const trained = isCredited && isTaught(said, i, options);
      tokens.push(id);
      mask.push(trained ? 1 : 0);
      logprobs.push(trained ? said.logprobs[i]! : 0);
    });
    places.set(node.id, tokens.length - 1);
    const { startedAt, endedAt, calls, policyVersion, sampledBy } = said;
    const toolCalls = calls && { ...calls, start: start + calls.start, end: start + calls.end };
    turns.push({
      role: "assistant",
      start,
      end: tokens.length,
      startedAt,
      endedAt,
      ...(toolCalls ? { toolCalls } : {}),
      // An agent's calls are all sampled by the policy that began its conversation.
      ...(policyVersion === undefined || node.call ? {} : { policyVersion }),
      ...(sampledBy === undefined ? {} : { sampledBy }),
      ...(node.call
        ? { call: { ...describeCall(node, described), ...(node === lastAnswer ? { last: true } : {}) } }
        : {}),
    });
  };
  const follow = (node: InputNode | AnswerNode, parent: number): void => {
    const segment: TrajectorySegment = { start: tokens.length, end: 0, parent, messages: [] };
    const index = segments.push(segment) - 1;
    let at = node;
    for (;;) {
      add(at);
      segment.messages.push(...(isAnswer(at) ? [at.said!.message] : at.messages));
      const next = listNext(at);
      segment.end = tokens.length;
      if (next.length !== 1) {
        for (const branch of next) follow(branch, index);
        return;
      }
      at = next[0]!;
    }
  };
  for (const root of roots) follow(root, -1);
  return {
    tokenIds: Int32Array.from(tokens),
    promptLength: roots[0]!.tokenIds!.length,
    responseMask: Uint8Array.from(mask),
    rolloutLogprobs: Float32Array.from(logprobs),
    turns,
    messages: listMessages(last),
    toolSchemas: (listPath(last)[0] as InputNode).tools,
    ...(segments.length > 1 ? { segments } : {}),
    finishReason: lastAnswer ? lastAnswer.said!.finishReason : "aborted",
    places,
    answers: answers.length,
  };
}

/** @param described roots whose tools an earlier answer has already recorded. */
function describeCall({ parent, call }: AnswerNode, described: Set<InputNode>): TurnCall {
  const [root] = listPath(parent) as [InputNode];
  const isFirst = !described.has(root);
  described.add(root);
  const tools = isFirst && root.tools.length > 0 ? { tools: root.tools } : {};
  return { messages: parent.messages.length, ...tools, ...call! };
}

/** True if an input is part of the episode: it was answered, or the agent marked it as heard. */
function counts(input: InputNode): boolean {
  return input.heard !== undefined || listAnswers(input).some(({ state }) => state === "done");
}

function findLast(answers: readonly AnswerNode[]): AnswerNode {
  return answers.reduce((a, b) => (b.order > a.order ? b : a));
}

/** End of the conversation that was answered last: that answer, or an input after it. */
function findEnd(root: InputNode, answers: readonly AnswerNode[]): AnswerNode | InputNode {
  if (answers.length === 0) return root;
  const last = findLast(answers);
  return listNext(last)[0] ?? last;
}

function listAnswered(input: InputNode): AnswerNode[] {
  return listNext(input).flatMap((answer) => [answer, ...listNext(answer).flatMap(listAnswered)]);
}

/** Answered children of a node, in an order independent of time. */
function listNext(node: AnswerNode): InputNode[];
function listNext(node: InputNode): AnswerNode[];
function listNext(node: InputNode | AnswerNode): (InputNode | AnswerNode)[];
function listNext(node: InputNode | AnswerNode): (InputNode | AnswerNode)[] {
  if (isAnswer(node)) return [...node.inputs.values()].filter(counts).sort(byId);
  const groups = [...node.answers].sort(([a], [b]) => (a < b ? -1 : 1));
  return groups.flatMap(([, answers]) => answers.filter(({ state }) => state === "done"));
}

/**
 * The earliest conversation comes first, provided that it was answered before another began; among concurrent ones
 * the order would be chance.
 */
function sortRoots(roots: readonly InputNode[]): InputNode[] {
  const sorted = [...roots].sort(byId);
  const begun = (root: InputNode) => Math.min(...listNext(root).map(({ said }) => said!.startedAt));
  const [first, second] = [...roots].sort((a, b) => begun(a) - begun(b));
  if (!first || !second) return sorted;
  const answered = Math.min(...listNext(first).map(({ said }) => said!.endedAt));
  return answered <= begun(second) ? [first, ...sorted.filter((root) => root !== first)] : sorted;
}

function byId(a: { id: string }, b: { id: string }): number {
  return a.id < b.id ? -1 : 1;
}

/** A turn of others; without times of its own, it began and ended when its answer began. */
function describeInput(input: InputNode, start: number, end: number): TurnRecord {
  const at = Math.min(
    ...listAnswers(input).flatMap(({ said }) => (said ? [said.startedAt] : [])),
    Number.MAX_SAFE_INTEGER,
  );
  const heard = input.heard ?? { startedAt: at, endedAt: at };
  return { role: input.messages.at(-1)!.role === "tool" ? "tool" : "user", start, end, ...heard };
}
