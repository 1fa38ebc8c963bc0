import type { AnswerNode, InputNode } from "@cria/episodes";
import { isAnswer, listAnswers } from "@cria/episodes/internal";
import type { ChatSession } from "@cria/rollout";
import { hideVectors } from "@cria/rollout/internal";

/**
 * A session's record as JSON: the nodes of its graph, each after its parent, with the tokens that it added. -1 stands
 * for an image's tokens; the messages have its hash and size. `mask` is 1 for sampled tokens; only these have logprobs.
 */
export function describeGraph(session: ChatSession): object {
  const { vocabSize } = session.model.engine.info;
  const nodes: object[] = [];
  const add = (node: InputNode | AnswerNode): void => {
    if (isAnswer(node)) {
      if (!node.said) return;
      nodes.push(describeAnswer(node));
      for (const input of node.inputs.values()) add(input);
      return;
    }
    nodes.push(describeInput(node, vocabSize));
    for (const answer of listAnswers(node)) add(answer);
  };
  for (const root of session.graph.roots.values()) add(root);
  return {
    nodes,
    outcome: session.outcome,
    node_rewards: session.rewards,
    ...(session.roleRewards ? { role_rewards: session.roleRewards } : {}),
    metrics: session.metrics,
  };
}

function describeInput({ id, parent, messages, tools, tokenIds }: InputNode, vocabSize: number) {
  return {
    id,
    parent: parent?.id ?? null,
    kind: "input",
    messages,
    ...(parent === null && tools.length > 0 ? { tools } : {}),
    token_ids: tokenIds && hideVectors(tokenIds, vocabSize),
    mask: 0,
  };
}

function describeAnswer({ id, parent, said, call }: AnswerNode) {
  const { message, finishReason, tokenIds, logprobs, constrained, policyVersion, startedAt, endedAt } = said!;
  return {
    id,
    parent: parent.id,
    kind: "answer",
    messages: [message],
    ...(call?.request.role === undefined ? {} : { role: call.request.role }),
    finish_reason: finishReason,
    token_ids: [...tokenIds],
    logprobs: [...logprobs],
    mask: 1,
    ...(constrained ? { constrained: [...constrained] } : {}),
    policy_version: policyVersion,
    started_at: startedAt,
    ended_at: endedAt,
  };
}
