import { hostname } from "node:os";
import { makeSay, type Report } from "../events.js";
import type { Leadership, TrainingBus } from "./training-bus.js";

/** How long it takes until people are told what is waited for, in milliseconds. */
const PATIENCE_MS = 2000;

/** What a training that shares its work runs under. */
export interface Lead {
  /** The caller's signal, and that of the right to coordinate. */
  signal: AbortSignal | undefined;
  /** Gives the right back. Never rejects. */
  end(): Promise<void>;
}

/** Takes the lead of a bus, once nobody else has it. Without a bus there is nothing to wait for. */
export async function takeLead(
  bus: TrainingBus | undefined,
  { signal, report }: { signal?: AbortSignal; report?: Report },
): Promise<Lead> {
  if (!bus) return { signal, end: async () => undefined };
  const say = makeSay(report);
  const waiting = setTimeout(
    () => say("another process coordinates this bus: standing by, to go on from its newest checkpoint when it ends"),
    PATIENCE_MS,
  );
  let leadership: Leadership;
  try {
    leadership = await bus.lead(`${hostname()}/${process.pid}`, signal);
  } finally {
    clearTimeout(waiting);
  }
  const lost = leadership.signal;
  return { signal: signal ? AbortSignal.any([signal, lost]) : lost, end: () => leadership.release() };
}
