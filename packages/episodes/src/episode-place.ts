import { AsyncLocalStorage } from "node:async_hooks";

/**
 * Identifies the conversation that running code belongs to, even after the call that started it has ended: a timer,
 * a promise that nobody awaits.
 */
export interface EpisodePlace {
  step: number;
  /** Readable name of row and sample. */
  sample: string;
  /**
   * Fails the conversation, and not its run, by an error that reached nobody. Returns false if its agent has returned
   * before. Left out: the running code is no agent's.
   */
  fail?: (error: unknown) => boolean;
}

const episodes = new AsyncLocalStorage<EpisodePlace>();

/** Runs a conversation, or its judge. */
export function runInEpisode<T>(place: EpisodePlace, work: () => T): T {
  return episodes.run(place, work);
}

/** Runs work that belongs to no single conversation, such as a judge of a whole batch. */
export function runOutsideEpisodes<T>(work: () => T): T {
  return episodes.exit(work);
}

/** The conversation of the running code. In a handler of an uncaught error: that of the code that threw. */
export function findEpisode(): EpisodePlace | undefined {
  return episodes.getStore();
}
