import type { ServerEvent } from "../protocol/protocol.js";
import { type RequestError, toRequestError } from "../request-error.js";
import type { Endpoint } from "./endpoint.js";
import { EventSink } from "./event-sink.js";

/** The parts of a stream, in order. */
export interface StreamParts<Answers> {
  begin: () => ServerEvent[];
  end: (answers: Answers) => ServerEvent[];
  fail: (error: RequestError) => ServerEvent[];
}

export interface StreamOptions<Answers> {
  endpoint: Endpoint;
  parts: StreamParts<Answers>;
  /**
   * Makes the answer; `send` sends the part that exists so far. `write` is called after the stream's first events,
   * since some events are numbered.
   */
  work: (send: (write: () => readonly ServerEvent[]) => void, signal: AbortSignal) => Promise<Answers>;
  /** Aborts when the client disconnects. */
  signal: AbortSignal;
  /** Ends the connection of a client that was cut off. */
  hangUp: () => void;
  onBegin: () => void;
}

const HEADERS = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache, no-transform",
  // Tells proxies not to hold events back.
  "x-accel-buffering": "no",
};

/**
 * The response of a streamed answer. A failure before the first sampled token is thrown, so that it gets its HTTP
 * status; a later one ends the stream with an error event.
 */
export async function streamEvents<Answers>(options: StreamOptions<Answers>): Promise<Response> {
  const { endpoint, parts, work, signal, hangUp, onBegin } = options;
  const { limits, metrics } = endpoint;
  const controller = new AbortController();
  const abort = () => controller.abort(signal.reason);
  if (signal.aborted) abort();
  else signal.addEventListener("abort", abort, { once: true });
  const sink = new EventSink({
    mostBytes: limits.streamBytes,
    stallMs: limits.stallMs,
    keepAliveMs: limits.keepAliveMs,
    onCut: (reason) => {
      metrics.countCut(reason);
      controller.abort(new Error(`the client of a stream is ${reason}`));
      if (reason === "slow") hangUp();
    },
  });
  return new Promise((resolve, reject) => {
    let hasBegun = false;
    const begin = () => {
      if (hasBegun) return;
      hasBegun = true;
      onBegin();
      sink.send(parts.begin());
      resolve(new Response(sink.body, { headers: HEADERS }));
    };
    const timer = setTimeout(begin, limits.beginMs);
    const send = (write: () => readonly ServerEvent[]) => {
      begin();
      sink.send(write());
    };
    work(send, controller.signal)
      .then(
        (answers) => send(() => parts.end(answers)),
        (error: unknown) => {
          if (!hasBegun) return reject(error);
          if (!controller.signal.aborted) metrics.countFailure();
          sink.send(parts.fail(toRequestError(error)));
        },
      )
      .catch(reject)
      .finally(() => {
        clearTimeout(timer);
        signal.removeEventListener("abort", abort);
        sink.close();
      });
  });
}
