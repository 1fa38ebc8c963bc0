import { ChatSession } from "@cria/rollout";
import { createApp } from "../http/create-app.js";
import { Endpoint } from "../http/endpoint.js";
import { type LocalChat, serveChat } from "./serve-chat.js";

/** No client in this process is cut off: it may read as slowly as it likes; and events cost it little. */
const longestTimer = 2 ** 31 - 1;
const patience = {
  streamBytes: Number.MAX_SAFE_INTEGER,
  stallMs: longestTimer,
  keepAliveMs: longestTimer,
  paceMs: 0,
};

/**
 * A `fetch` that answers requests by a chat of this process, as `cria serve` would over HTTP: what stands before the path does
 * not matter. For clients that take a `fetch`: `new OpenAI({ baseURL: "http://cria/v1", apiKey: "-", fetch: createFetch(session) })`.
 */
export function createFetch(chat: LocalChat): typeof fetch {
  const app = createApp(new Endpoint({ model: serveChat(chat), limits: patience }));
  return async (input, init) => {
    const request = new Request(input, init);
    try {
      return await untilAborted(request.signal, async () => app.fetch(request));
    } catch (error) {
      // Clients end what takes too long: of an agent that has returned that is nobody's failure either.
      if (chat instanceof ChatSession && chat.isLeft) return new Promise<never>(() => {});
      throw error;
    }
  };
}

/** Rejects with the signal's reason as soon as it aborts, as `fetch` does. */
async function untilAborted(signal: AbortSignal, answer: () => Promise<Response>): Promise<Response> {
  signal.throwIfAborted();
  let abort!: () => void;
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason);
  });
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([answer(), aborted]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
