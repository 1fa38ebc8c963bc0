import { HubError } from "@cria/core";
import type { HubSettings } from "./hub-settings.js";

/** Known facts about a failed request for a repository. */
export interface HubProblem {
  /** Only the cache may be used. */
  offline?: boolean;
  cause?: unknown;
  expected?: string;
  received?: string;
  remedy?: string;
}

interface ProblemPlace {
  type: "model" | "dataset";
  name: string;
  revision: string;
  settings: HubSettings;
}

/** An error for people, from the messages of hub clients, the network and the file system. */
export function makeHubError(summary: string, problem: HubProblem & ProblemPlace): HubError {
  const { type, name, revision, settings, cause } = problem;
  const subject = `${type} ${name}${revision === "main" ? "" : ` at ${revision}`}`;
  const { endpoint, token, cacheFolder } = settings;
  if (problem.offline) {
    return new HubError(summary, {
      code: "hub/offline",
      subject,
      expected: `files in ${cacheFolder}, because HF_HUB_OFFLINE is set`,
      received: problem.received,
      remedy: "unset HF_HUB_OFFLINE once to download it, or name a local file",
    });
  }
  const status = (cause as { statusCode?: number } | undefined)?.statusCode;
  const said = describeCause(cause);
  if (status === 404) {
    return new HubError("does not exist", {
      code: "hub/not-found",
      subject,
      expected: `a ${type} that ${endpoint} has, at a revision that it has`,
      received: said,
      remedy: "check owner, name and revision",
      cause,
    });
  }
  if (status === 401 || status === 403) {
    return new HubError("may not be read", {
      code: "hub/not-authorised",
      subject,
      expected: "a name that exists, and a token of an account that may read it",
      received: `${token ? "a token without access" : "no token"}; ${endpoint} says: ${said}`,
      // The hub gives the same answer for names that do not exist.
      remedy: `check owner and name; accept its terms at ${endpoint}/${type === "model" ? "" : "datasets/"}${name}; set HF_TOKEN`,
      cause,
    });
  }
  const code = findCode(cause);
  if (code === "ENOSPC" || code === "EDQUOT") {
    return new HubError("does not fit on the disk", {
      code: "hub/disk-full",
      subject,
      expected: `more space in ${cacheFolder}`,
      received: said,
      remedy:
        "free some space, or set HF_HUB_CACHE to a folder on another disk; the download then continues where it stopped",
      cause,
    });
  }
  if (code && /^(EACCES|EROFS|EPERM|ENOTDIR)$/.test(code)) {
    return new HubError("cannot be written to the cache", {
      code: "hub/cache-not-writable",
      subject,
      expected: `a writable folder ${cacheFolder}`,
      received: said,
      remedy: "set HF_HUB_CACHE to a folder that you may write to",
      cause,
    });
  }
  return new HubError(summary, {
    code: "hub/failed",
    subject,
    expected: problem.expected ?? `an answer of ${endpoint}`,
    received: problem.received ?? said,
    remedy:
      problem.remedy ??
      "check the network (HF_ENDPOINT names another hub) and try again: the download continues where it stopped",
    cause,
  });
}

/** The innermost cause, because fetch reports every failure as "fetch failed". */
export function describeCause(error: unknown): string {
  const inner = (error as { cause?: unknown } | undefined)?.cause;
  const { message = String(error), code } = (error ?? {}) as { message?: string; code?: string };
  if (inner !== undefined && inner !== null) return describeCause(inner);
  return code && !message.includes(code) ? `${code} ${message}`.trim() : message;
}

function findCode(error: unknown): string | undefined {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: unknown };
  if (typeof code === "string") return code;
  return cause === undefined || cause === null ? undefined : findCode(cause);
}
