import type { LanguageModelV3 } from "@ai-sdk/provider";
import type { ChatSession } from "../chat/chat-session.js";

/** What an agent works with in one episode. */
export interface AgentContext<Row = unknown> {
  /** A copy of the row that the episode is about. */
  row: Row;
  /** The policy, as any agent of the AI SDK takes a model. */
  model: LanguageModelV3;
  /** The same policy without the AI SDK: its calls, its message graph, rewards of single answers. */
  session: ChatSession;
  /** Aborts when time is up or the run ends. */
  signal: AbortSignal;
  /** Of the episode, for the agent's own random draws. */
  seed: number;
}

/**
 * What an agent says of its episode: a number, true or false for 1 or 0, `{ score, ...extra }` whose numbers become metrics, or
 * nothing where the task's reward judges.
 */
export type AgentResult =
  | number
  | boolean
  | { score: number; [name: string]: unknown }
  | null
  | undefined
  // biome-ignore lint/suspicious/noConfusingVoidType: a function without a result is an agent too.
  | void;

/**
 * Any program that calls the model it is given, as often as it likes, one call after the other or several at once. One that throws
 * has failed: its episode teaches nothing, unless it was out of tokens or calls, which is the policy's doing and scores 0.
 */
export type AgentFunction<Row = unknown> = (context: AgentContext<Row>) => AgentResult | Promise<AgentResult>;
