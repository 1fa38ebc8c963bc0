import type { ServerEvent } from "../protocol/protocol.js";

export interface EventSinkOptions {
  /** Most bytes that wait for a client that reads slowly. */
  mostBytes: number;
  /** Milliseconds for which a client may read nothing while something waits for it. */
  stallMs: number;
  /** Milliseconds between comments that keep the connection alive while there is nothing to send. */
  keepAliveMs: number;
  /** The client is too slow, or has disconnected: nothing more will be sent. Called at most once. */
  onCut: (reason: "slow" | "gone") => void;
}

const encoder = new TextEncoder();
const KEEP_ALIVE = ": keep-alive\n\n";

/**
 * Server-sent events for one client. The model does not wait for clients: unread events are kept, up to a bound of
 * bytes and time, at which the client is cut off.
 */
export class EventSink {
  readonly body: ReadableStream<Uint8Array>;
  private controller!: ReadableStreamDefaultController<Uint8Array>;
  private waiting: Uint8Array[] = [];
  private bytes = 0;
  private state: "open" | "closing" | "ended" = "open";
  /** True if the client asks for more than is buffered. */
  private wanted = false;
  private stall: NodeJS.Timeout | undefined;
  private readonly keepAlive: NodeJS.Timeout;

  constructor(private readonly options: EventSinkOptions) {
    this.body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.controller = controller;
        },
        pull: () => {
          this.wanted = true;
          this.flush();
        },
        cancel: () => this.cut("gone"),
      },
      { highWaterMark: 0 },
    );
    this.keepAlive = setInterval(() => {
      if (this.bytes === 0) this.write(KEEP_ALIVE);
    }, options.keepAliveMs);
    this.keepAlive.unref();
  }

  send(events: readonly ServerEvent[]): void {
    if (events.length === 0) return;
    this.write(events.map(formatEvent).join(""));
  }

  /** Ends the stream after the events that still wait. */
  close(): void {
    if (this.state !== "open") return;
    this.state = "closing";
    clearInterval(this.keepAlive);
    this.flush();
  }

  private write(text: string): void {
    if (this.state !== "open") return;
    const chunk = encoder.encode(text);
    this.waiting.push(chunk);
    this.bytes += chunk.byteLength;
    if (this.wanted) this.flush();
    else if (this.bytes > this.options.mostBytes) this.cut("slow");
    else this.watch();
  }

  private flush(): void {
    if (this.bytes > 0 && this.wanted) {
      this.wanted = false;
      const all = Buffer.concat(this.waiting, this.bytes);
      this.waiting = [];
      this.bytes = 0;
      clearTimeout(this.stall);
      this.stall = undefined;
      this.controller.enqueue(all);
    }
    if (this.state !== "closing") return;
    if (this.bytes > 0) this.watch();
    else {
      this.state = "ended";
      this.controller.close();
    }
  }

  private watch(): void {
    this.stall ??= setTimeout(() => this.cut("slow"), this.options.stallMs).unref();
  }

  private cut(reason: "slow" | "gone"): void {
    if (this.state === "ended") return;
    this.state = "ended";
    clearTimeout(this.stall);
    clearInterval(this.keepAlive);
    this.waiting = [];
    this.bytes = 0;
    if (reason === "slow") this.controller.close();
    this.options.onCut(reason);
  }
}

function formatEvent({ event, data }: ServerEvent): string {
  const text = typeof data === "string" ? data : JSON.stringify(data);
  return event === undefined ? `data: ${text}\n\n` : `event: ${event}\ndata: ${text}\n\n`;
}
