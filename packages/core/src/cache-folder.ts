import { homedir } from "node:os";
import { join } from "node:path";

/**
 * Path below Cria's cache folder of this user, for files that can be made again: ~/.cache/cria, or below
 * XDG_CACHE_HOME.
 */
export const userCacheFolder = (...parts: string[]): string =>
  join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "cria", ...parts);
