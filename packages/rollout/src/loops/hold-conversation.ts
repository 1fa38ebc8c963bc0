import type { PolicyEngine } from "@cria/core";
import type { UnjudgedTrajectory } from "@cria/episodes";
import type { ConversationReplay, ConversationWork, RolloutOptions } from "./rollout-options.js";
import { startRollouts } from "./run-rollouts.js";

/** What a conversation depends on beside its work: the environment that its process has. */
export type ConversationEnvironment = Omit<
  RolloutOptions,
  | "n"
  | "step"
  | "policyVersion"
  | "seed"
  | "temperature"
  | "topP"
  | "topK"
  | "minP"
  | "converse"
  | "replay"
  | "onTrajectory"
> &
  /** Of its record; default: tools, interaction or agent take part, and tokens are sampled. */
  Pick<ConversationReplay, "answers" | "calls" | "steer">;

/**
 * Holds a conversation for a rollout of another process: what `RolloutOptions.converse` asks for. It is not judged here.
 * @throws what ends a rollout: a wrong config or row, or the engine's failure. A conversation that fails is a record of that.
 */
export async function holdConversation(
  engine: PolicyEngine,
  { row, sample, step, policyVersion, sampling }: ConversationWork,
  { answers, calls, steer, ...environment }: ConversationEnvironment,
): Promise<UnjudgedTrajectory> {
  const { seed, temperature, topP, topK, minP, stop, maxTokensPerTurn } = sampling;
  const { conversations } = await startRollouts(engine, [row], {
    ...environment,
    // Whether it failed is for whoever asked to judge.
    reward: () => 0,
    aggregate: undefined,
    onFailure: "drop",
    n: 1,
    step,
    policyVersion,
    seed: 0,
    ...{ temperature, topP, topK, minP, stop, maxTokensPerTurn },
    replay: () => ({ seed, answers, calls, steer }),
  });
  environment.signal?.throwIfAborted();
  return { ...conversations[0]!, sampleIndex: sample };
}
