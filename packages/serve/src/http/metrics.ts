import type { ImageStats } from "@cria/core";
import type { ChatUsage } from "@cria/rollout";
import { Counter, Gauge, Histogram, Registry } from "prom-client";

/** Values that are read whenever the metrics are requested. */
export interface MetricSources {
  running: () => number;
  waiting: () => number;
  sessions: () => number;
  policyVersion: () => number;
  inEngine: () => { sequences: number; requests: number } | null;
  /** null: the model reads only text. */
  images: () => ImageStats | null;
  /** The 99th percentile of the event loop's delay since the start, in seconds; NaN without a measurement. */
  eventLoopDelay: () => number;
}

const SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];

/** Prometheus metrics of one endpoint. */
export class Metrics {
  private readonly registry = new Registry();
  private readonly requests: Counter<"route" | "status">;
  private readonly seconds: Histogram<"route">;
  private readonly firstEvent: Histogram<"route">;
  private readonly promptTokens: Counter;
  private readonly reusedTokens: Counter;
  private readonly completionTokens: Counter;
  private readonly cut: Counter<"reason">;
  private readonly failures: Counter;

  constructor(sources: MetricSources) {
    const registers = [this.registry];
    const counter = (name: string, help: string) => new Counter({ name: `cria_${name}`, help, registers });
    this.requests = new Counter({
      name: "cria_requests_total",
      help: "Requests by route and status.",
      labelNames: ["route", "status"],
      registers,
    });
    this.seconds = new Histogram({
      name: "cria_answer_seconds",
      help: "Seconds from a request to the end of its answer.",
      labelNames: ["route"],
      buckets: SECONDS,
      registers,
    });
    this.firstEvent = new Histogram({
      name: "cria_first_event_seconds",
      help: "Seconds from a request to the first piece of its streamed answer.",
      labelNames: ["route"],
      buckets: SECONDS,
      registers,
    });
    this.promptTokens = counter("prompt_tokens_total", "Tokens of prompts.");
    this.reusedTokens = counter("reused_tokens_total", "Tokens of prompts whose KV was reused.");
    this.completionTokens = counter("completion_tokens_total", "Tokens sampled.");
    this.failures = counter("stream_failures_total", "Streams that ended with an error.");
    this.cut = new Counter({
      name: "cria_streams_cut_total",
      help: "Streams whose client was too slow, or disconnected.",
      labelNames: ["reason"],
      registers,
    });
    const gauge = (name: string, help: string, read: () => number) =>
      new Gauge({
        name: `cria_${name}`,
        help,
        registers,
        collect() {
          this.set(read());
        },
      });
    gauge("requests_running", "Running calls of the model.", sources.running);
    gauge("requests_waiting", "Waiting calls of the model.", sources.waiting);
    gauge("sessions", "Sessions that clients created or named.", sources.sessions);
    gauge("policy_version", "Updates that the policy has seen.", sources.policyVersion);
    gauge(
      "event_loop_delay_p99_seconds",
      "Delay of the event loop since the start, 99th percentile.",
      sources.eventLoopDelay,
    );
    gauge("engine_sequences", "Sequences that exist in the engine.", () => sources.inEngine()?.sequences ?? Number.NaN);
    gauge("engine_requests", "Requests in flight in the engine.", () => sources.inEngine()?.requests ?? Number.NaN);
    if (sources.images() !== null) this.addImages(() => sources.images()!);
  }

  private addImages(read: () => ImageStats): void {
    const registers = [this.registry];
    const add = (Kind: typeof Counter | typeof Gauge, name: string, help: string, value: () => number) =>
      new Kind({
        name: `cria_images_${name}`,
        help,
        registers,
        collect(this: Counter | Gauge) {
          this.reset();
          this.inc(value());
        },
      });
    const again = "Images that were encoded again, after memory pressure had dropped their vectors.";
    add(Counter, "encoded_total", "Images that were decoded and encoded.", () => read().encoded);
    add(Counter, "encoded_again_total", again, () => read().encodedAgain);
    add(Counter, "encode_seconds_total", "Seconds spent on encoding.", () => read().encodeSeconds);
    add(Counter, "reused_total", "Uses of an image whose vectors were in memory.", () => read().reused);
    add(Gauge, "held", "Images whose vectors are in memory.", () => read().held);
    add(Gauge, "held_bytes", "Bytes of the vectors and files of these images.", () => read().heldBytes);
    add(
      Gauge,
      "memory_limit_bytes",
      "Bytes of vectors and files that may stay in memory unused.",
      () => read().memoryLimit,
    );
  }

  get contentType(): string {
    return this.registry.contentType;
  }

  write(): Promise<string> {
    return this.registry.metrics();
  }

  countRequest(route: string, status: number): void {
    this.requests.inc({ route, status: String(status) });
  }

  countAnswer(route: string, seconds: number): void {
    this.seconds.observe({ route }, seconds);
  }

  countFirstEvent(route: string, seconds: number): void {
    this.firstEvent.observe({ route }, seconds);
  }

  countUsage({ promptTokens, reusedTokens, completionTokens }: ChatUsage): void {
    this.promptTokens.inc(promptTokens);
    this.reusedTokens.inc(reusedTokens);
    this.completionTokens.inc(completionTokens);
  }

  countCut(reason: "slow" | "gone"): void {
    this.cut.inc({ reason });
  }

  countFailure(): void {
    this.failures.inc();
  }
}
