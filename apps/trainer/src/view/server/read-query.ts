import { RequestError } from "@cria/serve/internal";
import type { Context } from "hono";
import { groupSorts, MOST_GROUPS, type PageOptions } from "../index/list-groups.js";

/** Most characters of a search, and of a filter. */
const LONGEST = 10_000;
const GROUPS = 50;

/** @throws RequestError 400 for an invalid value. */
export function readPageOptions(c: Context): PageOptions {
  const sort = c.req.query("sort") ?? "order";
  const known = groupSorts.find((each) => each === sort);
  if (!known) throw refuse("sort", groupSorts.join(", "), sort);
  return {
    filter: readText(c, "filter"),
    search: readText(c, "search"),
    sort: known,
    down: c.req.query("down") === "1",
    offset: readNumber(c, "offset", 0),
    limit: Math.min(MOST_GROUPS, readNumber(c, "limit", GROUPS)),
    signal: c.req.raw.signal,
  };
}

/**
 * A whole number from 0; `given` if it is absent.
 * @throws RequestError 400
 */
export function readNumber(c: Context, name: string, given: number): number {
  const text = c.req.query(name);
  if (text === undefined || text === "") return given;
  if (/^\d{1,16}$/.test(text)) return Number(text);
  throw refuse(name, "a whole number from 0", text);
}

function readText(c: Context, name: string): string {
  const text = c.req.query(name) ?? "";
  if (text.length > LONGEST) throw refuse(name, `at most ${LONGEST} characters`, String(text.length));
  return text;
}

function refuse(subject: string, expected: string, received: string): RequestError {
  return new RequestError(400, "has a wrong value", {
    code: "view/bad-query",
    subject,
    expected,
    received: received.slice(0, 200),
  });
}
