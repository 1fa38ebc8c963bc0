/**
 * A prompt of the run: the same row of the same data, in every epoch and validation. `GET
 * /api/runs/:run/prompts?search=`
 */
export interface PromptEntry {
  /** Id in addresses. */
  id: string;
  title: string;
  place: string | null;
  dataSource: string;
  /** Dumps that contain it. */
  times: number;
}

/** `GET /api/runs/:run/prompts/:prompt`: the places of a prompt, in the order of steps. */
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

/** `GET /api/runs/:run/environment?from=&to=`: statistics of tools in the training's conversations of these steps. */
export interface EnvironmentDetail {
  /** The steps that were read, and all existing ones. */
  steps: number[];
  conversations: number;
  tools: ToolDetail[];
  /** Called names that do not exist, with their number of calls. */
  unknown: { name: string; calls: number }[];
  /** Calls that could not be read. */
  invalid: number;
}

export interface ToolDetail {
  name: string;
  description: string;
  calls: number;
  /** Number by kind: `timeout`, `exception`, ... */
  failures: Record<string, number>;
  /** Milliseconds; null where the dumps hold no times. */
  latency: { median: number; p95: number; longest: number } | null;
  /** A histogram for each argument: numbers in bins, texts by frequency. */
  arguments: ArgumentHistogram[];
}

export interface ArgumentHistogram {
  name: string;
  bins: { label: string; count: number }[];
  /** Calls that lacked it. */
  missing: number;
}
