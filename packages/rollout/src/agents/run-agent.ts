import { findEpisode } from "@cria/episodes";
import { runInEpisode } from "@cria/episodes/internal";
import { endsRun } from "./agent-episode.js";

/**
 * Runs an agent's function. An error that reaches nobody, such as that of a promise that the agent does not await, fails
 * its episode like one that it throws; then the agent's signal aborts, because nobody waits for it.
 * @param signal aborts the agent.
 */
export function runAgent<T>(agent: (signal: AbortSignal) => T | Promise<T>, signal: AbortSignal): Promise<T> {
  const place = findEpisode();
  if (!place) return Promise.resolve().then(() => agent(signal));
  return new Promise<T>((resolve, reject) => {
    const failed = new AbortController();
    let isOver = false;
    const fail = (error: unknown) => {
      // Errors of what a failed agent left running follow: its signal aborts that.
      if (failed.signal.aborted) return true;
      if (isOver || endsRun((error as { cause?: unknown } | null)?.cause)) return false;
      reject(error);
      failed.abort(error);
      return true;
    };
    const ending = AbortSignal.any([signal, failed.signal]);
    runInEpisode({ ...place, fail }, () => Promise.resolve().then(() => agent(ending)))
      .finally(() => {
        isOver = true;
      })
      .then(resolve, reject);
  });
}
