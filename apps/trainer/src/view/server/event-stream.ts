import { EventSink } from "@cria/serve/internal";
import type { ViewerEvent } from "@cria/viewer/api";
import type { RunCatalog } from "./catalog.js";

/**
 * Bytes that wait for a slow reader, and the longest time without reading. The app requests everything again after it
 * reconnects.
 */
const MOST_BYTES = 1 << 20;
const STALL_MS = 30_000;
const KEEP_ALIVE_MS = 15_000;
/** Most pages that listen at once. */
export const MOST_STREAMS = 64;

/** Server-sent events about runs. */
export class EventStreams {
  private readonly open = new Set<() => void>();

  constructor(private readonly catalog: RunCatalog) {}

  get isFull(): boolean {
    return this.open.size >= MOST_STREAMS;
  }

  /** @param hangUp ends the connection of a reader that is too slow. */
  answer(hangUp: () => void): Response {
    const end = () => {
      stop();
      this.open.delete(close);
    };
    const sink = new EventSink({
      mostBytes: MOST_BYTES,
      stallMs: STALL_MS,
      keepAliveMs: KEEP_ALIVE_MS,
      onCut: (reason) => {
        end();
        if (reason === "slow") hangUp();
      },
    });
    const stop = this.catalog.listen((event: ViewerEvent) => sink.send([{ data: event as object }]));
    const close = () => {
      end();
      sink.close();
    };
    this.open.add(close);
    return new Response(sink.body, {
      headers: {
        "content-type": "text/event-stream; charset=utf-8",
        "cache-control": "no-cache, no-transform",
        "x-accel-buffering": "no",
      },
    });
  }

  close(): void {
    for (const close of [...this.open]) close();
  }
}
