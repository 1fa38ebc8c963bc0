import { ClusterError } from "@cria/core";
import type { UnjudgedTrajectory } from "@cria/episodes";
import { agentLoops, type ConversationWork } from "@cria/rollout";
import { scoresConversations, selectInteraction, selectTools } from "@cria/rollout/internal";
import type { CoordinatedRun } from "@cria/trainer";
import { z } from "zod";
import type { JobBus } from "../bus/job-bus.js";
import type { ImageExchange } from "../images/image-exchange.js";
import type { JobMeta } from "../jobs/job-kinds.js";
import { type Packed, receive } from "../jobs/packed.js";
import { readConversation, readConversationRecord } from "../jobs/results.js";

/**
 * Reads a worker's conversation.
 * @throws ClusterError when it is invalid.
 */
export async function receiveConversation(
  bus: JobBus,
  images: ImageExchange,
  result: Packed,
  { record }: JobMeta,
  { row }: ConversationWork,
  { policy, environment }: Pick<CoordinatedRun, "policy" | "environment">,
): Promise<UnjudgedTrajectory> {
  const { info, images: encoder } = policy.engine;
  const { agentLoops: loops = agentLoops, defaultAgentLoop } = environment;
  const { traits } = loops.get(row.agentName ?? defaultAgentLoop);
  // An agent makes a prompt for each of its calls.
  const responseLength = traits.prompt === false ? Number.POSITIVE_INFINITY : environment.responseLength;
  const value = await receive(bus, result, z.unknown(), "a conversation", images);
  const found = readConversation(value, { info, images: encoder, responseLength });
  const problem = findUnearned(found, row, environment);
  if (problem) {
    throw new ClusterError("is invalid", {
      code: "cluster/invalid-message",
      subject: "the record of a conversation",
      ...problem,
    });
  }
  const beside = record ? await receive(bus, record, z.unknown(), "the metrics of a conversation") : { metrics: {} };
  return { ...found, ...readConversationRecord(beside, found.tokenIds.length) };
}

/** A score in the record from a judge that the conversation does not have; null: none. */
function findUnearned(
  { score, toolScore, interactionScore, toolRewards, turnScores }: Omit<UnjudgedTrajectory, "metrics" | "timeline">,
  row: ConversationWork["row"],
  { agentLoops: loops = agentLoops, defaultAgentLoop, tools, interactions }: CoordinatedRun["environment"],
): { expected: string; received: string } | null {
  const loop = row.agentName ?? defaultAgentLoop;
  const { traits, recorded } = loops.get(loop);
  const refuse = (what: string, received: unknown) => ({
    expected: `no ${what}: agent loop ${loop} has none here`,
    received: JSON.stringify(received).slice(0, 200),
  });
  if (!traits.scores && score !== null) return refuse("score of its own", score);
  // Only a user's loop knows its own output. An agent scores its episode and its answers, and has no tools of a task.
  if (recorded === undefined) return null;
  const names = traits.tools ? selectTools(tools, row) : [];
  if (names.length === 0 && toolRewards.length > 0) return refuse("rewards of tools", toolRewards);
  if (toolScore !== null && !names.some((name) => scoresConversations(tools.get(name)!)))
    return refuse("score of tools", toolScore);
  const hasInteraction = traits.interactions && selectInteraction(interactions ?? null, row) !== null;
  if (!hasInteraction && recorded === "answers" && turnScores.length > 0) return refuse("scores of turns", turnScores);
  if (!hasInteraction && interactionScore !== null) return refuse("score of an interaction", interactionScore);
  return null;
}
