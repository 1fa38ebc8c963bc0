import { AsyncLocalStorage } from "node:async_hooks";

/** Which conversation code belongs to, also after the call that began it is over: a timer, a promise that nobody awaits. */
export interface EpisodePlace {
  step: number;
  /** The row and its sample, in words. */
  sample: string;
}

const episodes = new AsyncLocalStorage<EpisodePlace>();

/** Runs a conversation, or its judge. */
export function runInEpisode<T>(place: EpisodePlace, work: () => T): T {
  return episodes.run(place, work);
}

/** Runs what belongs to no conversation of its own: a judge of many at once. */
export function runOutsideEpisodes<T>(work: () => T): T {
  return episodes.exit(work);
}

/** The conversation that the running code belongs to. In a handler of an uncaught error: the one that its code belonged to. */
export function findEpisode(): EpisodePlace | undefined {
  return episodes.getStore();
}
