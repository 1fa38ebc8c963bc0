import { callNativeSync, getAddon } from "./native.js";

/**
 * Locks a file that it makes for this (`flock`): the system ends the lock with the process, however that ends, so that no
 * lock is ever stale.
 * @returns what removes the file and ends the lock; null when it is locked, by another process or by this one.
 * @throws EngineError when the folder cannot be written or its disk has no locks.
 */
export function lockFile(path: string): (() => void) | null {
  return callNativeSync(() => getAddon().lockFile(path));
}
