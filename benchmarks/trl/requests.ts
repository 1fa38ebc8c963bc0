/** A request to ours.ts. `config` is a config's file, `changes` are settings of it. */
export type OurRequest =
  /** Trains an adapter on demonstrations, and writes its values into a folder. */
  | { do: "demonstrate"; config: string; changes: string[]; values: string }
  /** Takes steps, and saves the adapter. */
  | { do: "train"; config: string; changes: string[]; steps: number; adapter: string }
  /**
   * Measures an adapter on held-out rows with its likeliest tokens; with `values` the adapter is made from them first.
   */
  | { do: "judge"; config: string; changes: string[]; values: string | null; adapter: string };

export interface OurStep {
  seconds: number;
  rollout: number;
  scoring: number;
  training: number;
  /** Sampled ones. */
  tokens: number;
  reward: number;
}

export interface OurAnswers {
  demonstrate: { adapter: string; index: { name: string; shape: number[] }[] };
  train: {
    steps: OurStep[];
    /** The first step's conversations, one for each row. */
    samples: { tokens: number[]; promptLength: number; mask: number[]; logprobs: number[] }[];
    peakMemory: number;
  };
  judge: { success: number; rows: number };
}
