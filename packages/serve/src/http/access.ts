import { createHash, timingSafeEqual } from "node:crypto";
import { ConfigError } from "@cria/core";
import { RequestError } from "../request-error.js";

/** The client that a key admits. */
export interface Admission {
  /** The session that the key names, to which its requests belong. */
  session?: string;
}

/** Decides on a request by its key; null refuses it. `key` is null where the request has none. */
export type Authenticate = (key: string | null) => Admission | null;

/**
 * Admits requests with the server's key. Text after a colon behind it names a session: `Bearer <key>:<session>`.
 * @param key null: everyone is admitted, and the text after the last colon names a session.
 */
export function authenticateByKey(key: string | null): Authenticate {
  if (key === null)
    return (given) => {
      const at = given?.lastIndexOf(":") ?? -1;
      return at < 0 ? {} : { session: given!.slice(at + 1) };
    };
  return (given) => {
    if (given === null) return null;
    if (isEqual(given, key)) return {};
    const session = given.slice(key.length + 1);
    return given[key.length] === ":" && session !== "" && isEqual(given.slice(0, key.length), key) ? { session } : null;
  };
}

/** Compares in a time that does not depend on the position of the first difference. */
function isEqual(a: string, b: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}

/** The key of a request, in OpenAI's or Anthropic's header; null where there is none. */
export function readKey(headers: Headers): string | null {
  const bearer = /^Bearer +(.+)$/i.exec(headers.get("authorization") ?? "")?.[1]?.trim();
  return bearer ?? headers.get("x-api-key");
}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|::1|\[::1\])$/i;

export function isLoopback(host: string): boolean {
  return LOOPBACK.test(host);
}

/** @throws ConfigError when other machines could reach the server without a key. */
export function checkExposure(host: string, key: string | null): void {
  if (isLoopback(host) || key !== null) return;
  throw new ConfigError("would admit everyone", {
    code: "config/no-api-key",
    subject: `host ${host}`,
    expected: "an API key, since other machines can reach it",
    received: "no key",
    remedy: "set CRIA_API_KEY or --api-key-file, or stay on 127.0.0.1",
  });
}

export interface OriginRules {
  /**
   * Host names that requests may be sent to, without ports; null: any. On loopback only loopback's names are allowed.
   */
  hosts: readonly string[] | null;
  /** Origins of web pages that may call the server, `*` for all; the server's pages always may. */
  cors: readonly string[];
}

/**
 * Keeps web pages from using a browser to reach a server that its user trusts: under a name that was rebound to this
 * address (Host), or from another origin (Origin).
 * @throws RequestError 403
 */
export function checkOrigin(headers: Headers, { hosts, cors }: OriginRules): void {
  const host = headers.get("host") ?? "";
  const name = host.replace(/:\d+$/, "");
  const isKnown = hosts === null || hosts.some((each) => each.toLowerCase() === name.toLowerCase());
  if (!isKnown && !(hosts!.some(isLoopback) && isLoopback(name)))
    throw refuse("Host", hosts!.join(", "), host, "use the server's address");
  const origin = headers.get("origin");
  if (origin === null || isAllowedOrigin(origin, cors) || origin.replace(/^https?:\/\//i, "") === host) return;
  throw refuse("Origin", cors.join(", ") || "a page of this server", origin, "allow the page's origin with --cors");
}

export function isAllowedOrigin(origin: string, cors: readonly string[]): boolean {
  return cors.includes("*") || cors.includes(origin);
}

function refuse(subject: string, expected: string, received: string, remedy: string): RequestError {
  return new RequestError(403, "is not allowed", {
    code: "serve/forbidden-origin",
    subject,
    expected,
    received: received.slice(0, 200),
    remedy,
  });
}
