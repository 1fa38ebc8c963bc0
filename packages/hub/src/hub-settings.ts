import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { HubError } from "@cria/core";

/** Access to a hub, and the folder of its downloads, from the same environment variables as its other clients. */
export interface HubSettings {
  /** `HF_ENDPOINT`, without a slash at the end; default https://huggingface.co. */
  endpoint: string;
  /** `HF_TOKEN`, else the token that `hf auth login` stored; undefined: none. */
  token: string | undefined;
  /** `HF_HUB_OFFLINE`: use only the cache. */
  offline: boolean;
  /** `HF_HUB_CACHE`, else `hub` in `HF_HOME`; default ~/.cache/huggingface/hub, or below `XDG_CACHE_HOME`. */
  cacheFolder: string;
}

/** @throws HubError for an invalid token. */
export function readHubSettings(env: NodeJS.ProcessEnv = process.env): HubSettings {
  const home = env.HF_HOME || join(env.XDG_CACHE_HOME || join(homedir(), ".cache"), "huggingface");
  return {
    endpoint: (env.HF_ENDPOINT || "https://huggingface.co").replace(/\/+$/, ""),
    token: readToken(env, home),
    offline: /^(1|true|yes|on)$/i.test(env.HF_HUB_OFFLINE ?? ""),
    cacheFolder: env.HF_HUB_CACHE || join(home, "hub"),
  };
}

function readToken(env: NodeJS.ProcessEnv, home: string): string | undefined {
  const file = env.HF_TOKEN_PATH || join(home, "token");
  const [source, token] = env.HF_TOKEN
    ? ["HF_TOKEN", env.HF_TOKEN.trim()]
    : [file, existsSync(file) ? readFileSync(file, "utf8").trim() : ""];
  if (token === "" || token.startsWith("hf_")) return token || undefined;
  throw new HubError("is not an access token", {
    code: "hub/bad-token",
    subject: source,
    expected: "a text that begins with hf_",
    // Never includes the token itself: errors end up in logs.
    received: `${token.length} characters with another beginning`,
    remedy: "copy it again from the hub's settings, or unset it",
  });
}
