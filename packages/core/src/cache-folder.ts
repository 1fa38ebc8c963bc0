import { homedir } from "node:os";
import { join } from "node:path";

/** Where Cria keeps what it may make again, for this user: ~/.cache/cria, or below XDG_CACHE_HOME. */
export const userCacheFolder = (...parts: string[]): string =>
  join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "cria", ...parts);
