import { type ChatMessage, ConfigError, type FinishReason, type PolicyEngine, type PolicySequence } from "@cria/core";
import type { DeltaTokenizer } from "@cria/tokenizer-delta";
import type { BaseTool } from "@cria/tools";
import type { DatasetRow } from "./dataset-row.js";
import type { TruncateSide } from "./truncate-text.js";

export interface MultiTurnOptions {
  /** Null: no limit. */
  maxAssistantTurns: number | null;
  maxUserTurns: number | null;
  maxParallelCalls: number;
  /** In tokens. */
  maxToolResponseLength: number;
  /** In characters; 0: no limit. */
  maxToolResponseChars: number;
  toolResponseTruncateSide: TruncateSide;
  /** Name of a tool-call parser. */
  format: string;
  toolTimeoutS: number;
  tokenizationSanityCheckMode: "strict" | "ignore_strippable" | "disable";
}

export const defaultMultiTurn: MultiTurnOptions = {
  maxAssistantTurns: null,
  maxUserTurns: null,
  maxParallelCalls: 1,
  maxToolResponseLength: 256,
  maxToolResponseChars: 0,
  toolResponseTruncateSide: "middle",
  format: "hermes",
  toolTimeoutS: 30,
  tokenizationSanityCheckMode: "strict",
};

export interface SamplingParams {
  temperature: number;
  topP: number;
  topK: number;
  /** The trajectory's seed; each turn derives its own. */
  seed: number;
}

/** What an agent loop works with. */
export interface AgentLoopContext {
  engine: Pick<PolicyEngine, "tokenize" | "detokenize" | "info">;
  tokenizer: DeltaTokenizer;
  tools: ReadonlyMap<string, BaseTool>;
  multiTurn: MultiTurnOptions;
  /** Most tokens after the prompt, over all turns. */
  responseLength: number;
  /** A sequence that already holds the prompt. The caller disposes it. */
  sequence: PolicySequence;
  promptIds: Int32Array;
  signal?: AbortSignal;
}

export interface AgentLoopOutput {
  promptIds: Int32Array;
  /** Everything after the prompt; the next two are as long. */
  responseIds: Int32Array;
  /** 1 = sampled by the policy. */
  responseMask: Uint8Array;
  responseLogprobs: Float32Array;
  /** `tokenIndex` counts from the start of the response. */
  turnScores: { value: number; tokenIndex: number }[];
  toolRewards: { value: number; tokenIndex: number }[];
  /** Sum over tools of calcReward; null when no tool was there. */
  toolScore: number | null;
  numTurns: number;
  metrics: Record<string, number>;
  messages: ChatMessage[];
  finishReason: FinishReason;
  extraFields: Record<string, unknown>;
}

/** Runs one episode. A bad rollout is data: only broken invariants and aborts throw. */
export interface AgentLoop {
  run(sampling: SamplingParams, row: DatasetRow): Promise<AgentLoopOutput>;
}

export type AgentLoopFactory = (context: AgentLoopContext) => AgentLoop;

const factories = new Map<string, AgentLoopFactory>();

export function registerAgentLoop(name: string, factory: AgentLoopFactory): void {
  factories.set(name, factory);
}

/** @throws ConfigError when no loop has this name. */
export function getAgentLoop(name: string): AgentLoopFactory {
  const factory = factories.get(name);
  if (factory) return factory;
  throw new ConfigError("is not a registered agent loop", {
    code: "config/unknown-agent-loop",
    subject: "agent_name",
    expected: [...factories.keys()].join(", "),
    received: name,
    remedy: "register it with registerAgentLoop",
  });
}
