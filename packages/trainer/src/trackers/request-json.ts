export interface JsonRequest {
  method?: "GET" | "POST" | "PUT";
  headers?: Record<string, string>;
  body?: unknown;
  signal: AbortSignal;
}

/** A response with an error status. */
export class HttpError extends Error {
  constructor(
    readonly status: number,
    url: string,
    /** Body of the server's response. */
    readonly body: string,
  ) {
    super(`${new URL(url).host} answered ${status}: ${body.slice(0, 300)}`);
  }
}

/** @throws HttpError, or fetch's own errors. */
export async function requestJson<T>(url: string, { method = "POST", headers, body, signal }: JsonRequest): Promise<T> {
  const response = await fetch(url, {
    method,
    headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
    body: body === undefined ? undefined : JSON.stringify(body),
    signal,
  });
  const text = await response.text();
  if (!response.ok) throw new HttpError(response.status, url, text);
  return (text === "" ? {} : JSON.parse(text)) as T;
}

export function encodeBasicAuth(user: string, password: string): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;
}
