import type { ApiError } from "../../api/index.js";

/** The error that an address of the API answered. */
export class RequestError extends Error {
  constructor(
    message: string,
    readonly remedy: string | null,
    readonly status: number,
    /** The server asks for `confirm: true`. */
    readonly needsConfirm = false,
  ) {
    super(message);
  }
}

/** True if the page is in a folder of `cria view --static`: files instead of a server. */
export const isStatic = document.querySelector('meta[name="cria-static"]') !== null;

type Params = Record<string, string | number | null | undefined>;

/** An address in the API. Segments are encoded; empty parameters are left out. */
export function apiAddress(path: readonly (string | number)[], params: Params = {}): string {
  const segments = path.map((part) => encodeURIComponent(part)).join("/");
  // A file's name is encoded once more, as in its folder.
  if (isStatic) return new URL(`data/${segments.replaceAll("%", "%25")}.json`, document.baseURI).href;
  const address = new URL(`api/${segments}`, document.baseURI);
  address.hash = "";
  for (const [key, value] of Object.entries(params))
    if (value !== null && value !== undefined && value !== "") address.searchParams.set(key, String(value));
  const token = new URLSearchParams(location.search).get("token");
  if (token !== null) address.searchParams.set("token", token);
  return address.href;
}

/** The address of a file that answers refer to; the same on a server and in a static folder. */
export function fileAddress(path: readonly string[]): string {
  if (isStatic) return apiAddress(path).replace(/\.json$/, "");
  return apiAddress(path);
}

/** @throws RequestError, or an AbortError. */
export async function getJson<T>(address: string, signal?: AbortSignal): Promise<T> {
  const response = await send(address, { signal });
  return (await response.json()) as T;
}

/** @throws RequestError, or an AbortError. */
export async function postJson<T>(address: string, body: unknown, signal?: AbortSignal): Promise<T> {
  return (await (await post(address, body, signal)).json()) as T;
}

/**
 * Posts, and yields each line of the answer as JSON.
 *
 * @throws RequestError, or an AbortError.
 */
export async function* postForLines<T>(address: string, body: unknown, signal?: AbortSignal): AsyncGenerator<T> {
  const response = await post(address, body, signal);
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    const lines = (rest + (value ?? "")).split("\n");
    rest = done ? "" : lines.pop()!;
    for (const line of lines) if (line.trim() !== "") yield JSON.parse(line) as T;
    if (done) return;
  }
}

function post(address: string, body: unknown, signal?: AbortSignal): Promise<Response> {
  const headers = { "content-type": "application/json" };
  return send(address, { method: "POST", headers, body: JSON.stringify(body), signal });
}

async function send(address: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(address, init);
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new RequestError("cria view does not answer", "Start it again; this page goes on by itself.", 0);
  }
  if (response.ok) return response;
  const { error } = (await response.json().catch(() => ({ error: undefined }))) as Partial<ApiError>;
  throw new RequestError(
    error?.message ?? (isStatic ? "This folder does not hold it" : `The server answered ${response.status}`),
    error?.remedy ?? null,
    response.status,
    error?.needs === "confirm",
  );
}
