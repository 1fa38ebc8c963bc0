import type { GenerateResult, PolicySequence } from "@cria/core";
import type { ToolStates } from "./tool-states.js";

/** An answer that a conversation was given, and the digest of its question. */
export interface GivenAnswer {
  asked: string;
  answer: unknown;
}

/** The end of a turn at which a conversation went on, with all that another one needs to go on from there. */
export interface BranchPoint {
  /** Index of the conversation among the samples of its row. */
  sample: number;
  /** Number of its assistant turns by then; each was answered. */
  turns: number;
  /** Number of its tokens by then: prompt, turns and replies. */
  tokens: number;
  /** Seeds of these turns, in order. */
  seeds: readonly number[];
  /** The policy's samples in these turns; there may be later turns in the list. */
  sampled: readonly GenerateResult[];
  /** Answers of tools and interaction, by `nameQuestion`; there may be answers to later turns. */
  answers: ReadonlyMap<string, GivenAnswer>;
  /** States of its tools by then. */
  tools: ToolStates;
  /** Holds the tokens up to the last sampled one. */
  sequence: PolicySequence;
}
