import { agentLoops, type ConversationWork, type UnjudgedTrajectory } from "@cria/rollout";
import type { CoordinatedRun } from "@cria/trainer";
import { z } from "zod";
import type { JobBus } from "../bus/job-bus.js";
import type { ImageExchange } from "../images/image-exchange.js";
import type { JobMeta } from "../jobs/job-kinds.js";
import { type Packed, receive } from "../jobs/packed.js";
import { readConversation, readConversationRecord } from "../jobs/results.js";

/** Reads the conversation that a worker held. @throws ClusterError when it is not what it must be. */
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
  // Where an agent makes the prompts, each of its calls has its own.
  const responseLength = traits.prompt === false ? Number.POSITIVE_INFINITY : environment.responseLength;
  const value = await receive(bus, result, z.unknown(), "a conversation", images);
  const found = readConversation(value, { info, images: encoder, responseLength });
  const beside = record ? await receive(bus, record, z.unknown(), "what comes with a conversation") : { metrics: {} };
  return { ...found, ...readConversationRecord(beside, found.tokenIds.length) };
}
