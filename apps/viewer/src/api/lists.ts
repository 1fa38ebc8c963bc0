/** A prompt of the run: the same row of the same data, in every epoch and validation. `GET /api/runs/:run/prompts?search=` */
export interface PromptEntry {
  /** Stands in addresses. */
  id: string;
  title: string;
  place: string | null;
  dataSource: string;
  /** Dumps in which it stands. */
  times: number;
}

/** `GET /api/runs/:run/prompts/:prompt`: where it stands, in the order of steps. */
export interface PromptDetail {
  prompt: PromptEntry;
  appearances: { dump: string; step: number | null; validation: boolean; conversations: PromptConversation[] }[];
}

export interface PromptConversation {
  line: number;
  sample: number;
  reward: number | null;
  success: boolean | null;
}

/** `GET /api/runs/:run/environment?from=&to=`: what tools did in the training's conversations of these steps. */
export interface EnvironmentDetail {
  /** Steps that were read, and all that could be. */
  steps: number[];
  conversations: number;
  tools: ToolDetail[];
  /** Names that were called and do not exist, with how often. */
  unknown: { name: string; calls: number }[];
  /** Calls that could not be read. */
  invalid: number;
}

export interface ToolDetail {
  name: string;
  description: string;
  calls: number;
  /** By why: `timeout`, `exception`, ... */
  failures: Record<string, number>;
  /** Milliseconds; null where the dumps hold no times. */
  latency: { median: number; p95: number; longest: number } | null;
  /** Of each argument: numbers in bins, texts by how often. */
  arguments: ArgumentHistogram[];
}

export interface ArgumentHistogram {
  name: string;
  bins: { label: string; count: number }[];
  /** Calls that lacked it. */
  missing: number;
}
