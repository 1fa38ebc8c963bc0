import { findEpisode } from "@cria/episodes";
import { runInEpisode } from "@cria/episodes/internal";

/**
 * Runs an agent's function. An error that reaches nobody, such as that of a promise that the agent does not await, fails
 * its episode like one that it throws.
 */
export function runAgent<T>(agent: () => T | Promise<T>): Promise<T> {
  const place = findEpisode();
  if (!place) return Promise.resolve().then(agent);
  return new Promise<T>((resolve, reject) => {
    let hasReturned = false;
    const fail = (error: unknown) => {
      if (!hasReturned) reject(error);
      return !hasReturned;
    };
    const returned = runInEpisode({ ...place, fail }, () => Promise.resolve().then(agent));
    returned.then((result) => {
      hasReturned = true;
      resolve(result);
    }, reject);
  });
}
