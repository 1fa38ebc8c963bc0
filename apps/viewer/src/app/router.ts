import { createSignal } from "solid-js";

/** The place in the app: the part of the address after `#`, which servers and static folders leave to it. */
export interface Place {
  /** Decoded segments of the path. */
  path: string[];
  query: Record<string, string>;
}

type Query = Record<string, string | number | null | undefined>;

const [place, setPlace] = createSignal(readPlace());
window.addEventListener("hashchange", () => setPlace(readPlace()));

export { place };

/** The address of a view, for `href`. Null and empty values of the query are left out. */
export function address(path: readonly (string | number)[], query: Query = {}): string {
  const entries = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const search = new URLSearchParams(entries.map(([key, value]) => [key, String(value)])).toString();
  return `#/${path.map((part) => encodeURIComponent(part)).join("/")}${search && `?${search}`}`;
}

export function go(to: string): void {
  location.hash = to;
}

/** Changes values of the query in this view's address, without a new entry in the history. */
export function changeQuery(change: Query): void {
  const { path, query } = place();
  history.replaceState(null, "", address(path, { ...query, ...change }));
  setPlace(readPlace());
}

function readPlace(): Place {
  const [path = "", search = ""] = splitOnce(location.hash.replace(/^#\/?/, ""), "?");
  return {
    path: path.split("/").filter(Boolean).map(decode),
    query: Object.fromEntries(new URLSearchParams(search)),
  };
}

/** A mistyped segment stays unchanged. */
function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

function splitOnce(text: string, separator: string): string[] {
  const at = text.indexOf(separator);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}
