import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { checkOrigin, isLoopback, RequestError } from "@cria/serve/internal";
import type { MiddlewareHandler } from "hono";

const COOKIE = "cria-view";

/** A token that keeps others on the network out; null on loopback. */
export function makeToken(host: string): string | null {
  return isLoopback(host) ? null : randomBytes(24).toString("base64url");
}

/**
 * Admits requests to this server's address, from its pages, and beyond loopback with its token: first in the address,
 * then in a cookie.
 * @throws RequestError 401 or 403
 */
export function guard(host: string, token: string | null): MiddlewareHandler {
  const origins = { hosts: isLoopback(host) ? [host] : null, cors: [] };
  return async (c, next) => {
    checkOrigin(c.req.raw.headers, origins);
    // Browsers send the origin of a request; a page of another site may only open the viewer.
    const site = c.req.header("sec-fetch-site");
    const isOpening = c.req.method === "GET" && c.req.header("sec-fetch-mode") === "navigate";
    if ((site === "cross-site" || site === "same-site") && !isOpening)
      throw new RequestError(403, "comes from a page of another site", {
        code: "view/other-site",
        subject: "the request",
        expected: "a request from the viewer's own pages",
        received: `Sec-Fetch-Site: ${site}`,
      });
    if (token !== null) {
      const given = c.req.query("token");
      if (!isEqual(given ?? readCookie(c.req.header("cookie")), token))
        throw new RequestError(401, "is missing or wrong", {
          code: "view/bad-token",
          subject: "token",
          expected: "the whole address that cria view printed, with ?token=",
        });
      if (given !== undefined) c.header("set-cookie", `${COOKIE}=${token}; Path=/; HttpOnly; SameSite=Strict`);
    }
    return next();
  };
}

function readCookie(header = ""): string {
  const found = header.split(/;\s*/).find((part) => part.startsWith(`${COOKIE}=`));
  return found?.slice(COOKIE.length + 1) ?? "";
}

/** Compares in a time that does not depend on the position of the first difference. */
function isEqual(a: string, b: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}

/** Headers that keep models' text from becoming a page, running code, or reaching any server. */
export const safeHeaders: Record<string, string> = {
  "content-security-policy": [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; "),
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=()",
};
