import type { PolicyEngine, SamplingOptions } from "@cria/core";
import type { UnjudgedTrajectory } from "@cria/episodes";
import { sampleOnce } from "../data/row-samples.js";
import type { ConversationReplay, ConversationWork, RolloutOptions } from "./rollout-options.js";
import { startRollouts } from "./run-rollouts.js";

/** Everything that a conversation depends on beside its work: the environment that its process provides. */
export type ConversationEnvironment = Omit<
  RolloutOptions,
  | keyof SamplingOptions
  | "n"
  | "tree"
  | "turnValues"
  | "step"
  | "policyVersion"
  | "converse"
  | "journal"
  | "choose"
  | "replay"
  | "onTrajectory"
> &
  /** From the conversation's record; default: tools, interaction or agent take part, and tokens are sampled. */
  Pick<ConversationReplay, "answers" | "calls" | "steer">;

/**
 * Holds a conversation for a rollout in another process, for `RolloutOptions.converse`. The caller judges it.
 * @throws errors that end a rollout: a wrong config or row, or an engine failure. A failed conversation is returned
 * as a record.
 */
export async function holdConversation(
  engine: PolicyEngine,
  { row, sample, step, policyVersion, sampling }: ConversationWork,
  { answers, calls, steer, ...environment }: ConversationEnvironment,
): Promise<UnjudgedTrajectory> {
  const { seed, earlierSeeds, ...parameters } = sampling;
  const { conversations } = await startRollouts(engine, sampleOnce([row]), {
    ...environment,
    // The caller judges and handles failures.
    reward: () => 0,
    aggregate: undefined,
    onFailure: "drop",
    n: 1,
    step,
    policyVersion,
    seed: 0,
    ...parameters,
    replay: () => ({ seed, earlierSeeds, answers, calls, steer }),
  });
  environment.signal?.throwIfAborted();
  return { ...conversations[0]!, sampleIndex: sample };
}
