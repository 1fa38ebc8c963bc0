import { ChatSession } from "@cria/rollout";
import { createApp } from "../http/create-app.js";
import { Endpoint } from "../http/endpoint.js";
import { type LocalChat, serveChat } from "./serve-chat.js";

/** Limits for clients in this process: they may read as slowly as they like, and events cost them little. */
const longestTimer = 2 ** 31 - 1;
const patience = {
  streamBytes: Number.MAX_SAFE_INTEGER,
  stallMs: longestTimer,
  keepAliveMs: longestTimer,
  paceMs: 0,
};

/**
 * A `fetch` whose requests a chat in this process answers, as `cria serve` would over HTTP; it ignores the host of an
 * address. For clients that take a `fetch`: `new OpenAI({ baseURL: "http://cria/v1", apiKey: "-", fetch:
 * createFetch(session) })`.
 */
export function createFetch(chat: LocalChat): typeof fetch {
  const app = createApp(new Endpoint({ model: serveChat(chat), limits: patience }));
  return async (input, init) => {
    const request = new Request(input, init);
    try {
      return await untilAborted(request.signal, async () => app.fetch(request));
    } catch (error) {
      // Clients turn timeouts into errors. After the agent has returned, nobody would handle one, so the call never
      // settles.
      if (chat instanceof ChatSession && chat.isLeft) return new Promise<never>(() => {});
      throw error;
    }
  };
}

/** Rejects with the signal's reason as soon as it aborts, like `fetch`. */
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
