import { callNativeSync, getAddon } from "./native.js";

/**
 * Locks a file that it creates for this purpose (`flock`). The system releases the lock when the process ends for any
 * reason, so no lock is ever stale.
 * @returns a function that removes the file and releases the lock; null when another process or this one holds the
 * lock.
 * @throws EngineError when the folder cannot be written or its disk does not support locks.
 */
export function lockFile(path: string): (() => void) | null {
  return callNativeSync(() => getAddon().lockFile(path));
}
