/** A group of the replay buffer, as a sampler of groups sees it. Plain JSON. */
export interface BufferedGroup {
  /** Step that first learned from it, from 1. */
  step: number;
  /** Number of steps since then, at least 1. */
  age: number;
  /** Uid of its prompt's row. Two groups of one row have different steps. */
  uid: string;
  /** The row's `data_source`. */
  dataSource: string;
  /** Reward of each conversation. */
  rewards: number[];
  /** Number of sampled tokens of each conversation. */
  tokens: number[];
  /** Share of the judged conversations that reached the goal, in [0, 1]; null: none was judged. */
  success: number | null;
}

/** Request to a sampler for the groups from which one step learns once more. */
export interface GroupRequest {
  /** Step number, from 1. */
  step: number;
  /** Most groups to pick, at least 1: `share` times the step's own groups, or all in the buffer if fewer. */
  count: number;
  /** The groups in the buffer that are young enough (`max_age`), the oldest first. */
  groups: readonly BufferedGroup[];
  /** Seed of this step, derived from `rollout.seed`: the same in every run. */
  seed: number;
}

/**
 * Chooses the groups of the replay buffer from which a step learns once more. The choice may depend only on requests,
 * never on a clock or a random generator of its own: a killed run then resumes identically.
 */
export interface GroupSampler {
  /**
   * Returns distinct positions in `groups`, at most `count`; none: the step learns only from its own groups. Called
   * in the order of the steps, and only for steps that have something to pick.
   */
  pick(request: GroupRequest): readonly number[];
  /** All state that `pick` has changed, as plain JSON, for checkpoints. Goes with `restore`. */
  save?(): unknown;
  /** Restores the state that `save` returned. */
  restore?(state: unknown): void;
}

export interface GroupSamplerOptions {
  /** `rollout.seed`. */
  seed: number;
  /** `algorithm.replay.sampling_kwargs`. */
  kwargs: Readonly<Record<string, unknown>>;
}

/** A class of samplers of groups. */
export type GroupSamplerClass = new (options: GroupSamplerOptions) => GroupSampler;

/** A stateless sampler: a function with the contract of `GroupSampler.pick`. */
export type GroupPicker = (request: GroupRequest & Pick<GroupSamplerOptions, "kwargs">) => readonly number[];
