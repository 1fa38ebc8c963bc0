import type { LanguageModelV3 } from "@ai-sdk/provider";
import type { ChatSession } from "../chat/chat-session.js";
import type { RoleRewards } from "../chat/role-rewards.js";

/** Argument of an agent: everything it uses in one episode. */
export interface AgentContext<Row = unknown> {
  /** A copy of the episode's row. */
  row: Row;
  /** The policy as a language model of the AI SDK. */
  model: LanguageModelV3;
  /** The same policy without the AI SDK: direct calls, the message graph, rewards for single answers. */
  session: ChatSession;
  /** Aborts when time is up or the run ends. */
  signal: AbortSignal;
  /** Seed of the episode, for the agent's own random draws. */
  seed: number;
}

/**
 * Result of an agent: a score (number; true = 1, false = 0), `{ score, ...extra }` whose numeric extras become
 * metrics, `{ rewards, ...extra }` with a reward for each role that the model played (`score` is 0 then, if left out),
 * or nothing if the task's reward judges.
 */
export type AgentResult =
  | number
  | boolean
  | { score: number; rewards?: RoleRewards; [name: string]: unknown }
  | { score?: undefined; rewards: RoleRewards; [name: string]: unknown }
  | null
  | undefined
  // biome-ignore lint/suspicious/noConfusingVoidType: a function without a result is an agent too.
  | void;

/**
 * A function that calls the given model any number of times, in sequence or concurrently. If it throws, the episode
 * has failed and is not trained on; but if tokens or calls had run out, the episode scores 0, because that is the
 * policy's doing.
 */
export type AgentFunction<Row = unknown> = (context: AgentContext<Row>) => AgentResult | Promise<AgentResult>;
