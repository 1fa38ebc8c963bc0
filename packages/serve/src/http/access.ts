import { createHash, timingSafeEqual } from "node:crypto";
import { ConfigError } from "@cria/core";
import { RequestError } from "../request-error.js";

/** Whom a key lets in. */
export interface Admission {
  /** The session that the key carries: its requests belong there. */
  session?: string;
}

/** Decides by the key of a request; null: it is not let in. `key` is null where the request has none. */
export type Authenticate = (key: string | null) => Admission | null;

/**
 * Lets in who has the key. What follows it after a colon names a session: `Bearer <key>:<session>`.
 * @param key null: everyone is let in, and a session is what follows the last colon.
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

/** In a time that does not depend on where they differ. */
function isEqual(a: string, b: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}

/** The key of a request, as OpenAI's clients send it or Anthropic's; null where there is none. */
export function readKey(headers: Headers): string | null {
  const bearer = /^Bearer +(.+)$/i.exec(headers.get("authorization") ?? "")?.[1]?.trim();
  return bearer ?? headers.get("x-api-key");
}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|::1|\[::1\])$/i;

export function isLoopback(host: string): boolean {
  return LOOPBACK.test(host);
}

/** @throws ConfigError when the server would be open to others without a key. */
export function checkExposure(host: string, key: string | null): void {
  if (isLoopback(host) || key !== null) return;
  throw new ConfigError("would let everyone in", {
    code: "config/no-api-key",
    subject: `host ${host}`,
    expected: "an API key, since other machines can reach it",
    received: "no key",
    remedy: "set CRIA_API_KEY or --api-key-file, or stay on 127.0.0.1",
  });
}

export interface OriginRules {
  /** Host names that requests may be sent to, without ports; null: any. On loopback only its own names are right. */
  hosts: readonly string[] | null;
  /** Origins of web pages that may call the server, `*` for all; its own pages always may. */
  cors: readonly string[];
}

/**
 * A page in a browser must not reach a server that its user trusts: neither under a name that was rebound to this address (Host),
 * nor from another origin (Origin).
 * @throws RequestError 403
 */
export function checkOrigin(headers: Headers, { hosts, cors }: OriginRules): void {
  const host = headers.get("host") ?? "";
  const name = host.replace(/:\d+$/, "");
  const isKnown = hosts === null || hosts.some((each) => each.toLowerCase() === name.toLowerCase());
  if (!isKnown && !(hosts!.some(isLoopback) && isLoopback(name)))
    throw refuse("Host", hosts!.join(", "), host, "reach the server under its own address");
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
