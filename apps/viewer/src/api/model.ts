/**
 * Questions to a model: `POST /api/runs/:run/dumps/:dump/episodes/:line/{alternatives,now,fork}`. The first one loads
 * the run's model with the adapter of the conversation's step; while the run trains they answer 409 (`needs:
 * "confirm"`) unless the body has `confirm: true`. Without an available model they answer 404 with the reason.
 */
export interface ModelRequest {
  confirm?: boolean;
}

/** `alternatives`: other likely tokens at a place. */
export interface AlternativesRequest extends ModelRequest {
  /** Index of a sampled token. */
  token: number;
  /** Number of candidates, at most 50; default 10. */
  count?: number;
}

export interface Alternatives {
  token: number;
  choices: { id: number; text: string; logprob: number }[];
}

/** `now`: logprobs of all tokens by the run's newest adapter. */
export interface NowLogprobs {
  /** Step of the adapter. */
  step: number;
  /** As long as the conversation's tokens; 0 for tokens that were not sampled. */
  logprobs: number[];
}

/** `fork`: continues from a token, answered as JSON lines (`ForkEvent`). */
export interface ForkRequest extends ModelRequest {
  /** Tokens before this index stay. */
  token: number;
  /** The token to put there; absent: it is sampled. */
  replacement?: number;
  seed?: number;
}

export type ForkEvent =
  | { type: "loading" }
  | { type: "text"; role: "assistant" | "tool" | "user"; text: string }
  | { type: "end"; reward: number | null; success: boolean | null; finish: string; tokens: number }
  | { type: "error"; message: string };
