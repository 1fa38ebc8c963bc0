import { hostname } from "node:os";
import { makeSay, type Report } from "../events.js";
import type { Leadership, TrainingBus } from "./training-bus.js";

/** Milliseconds before a wait is reported. */
const PATIENCE_MS = 2000;

/** The right to coordinate, as a training uses it. */
export interface Lead {
  /** Aborts with the caller's signal, or when the right to coordinate is lost. */
  signal: AbortSignal | undefined;
  /** Returns the cause of a training's failure: the loss of the right to coordinate, if it was lost; else the error. */
  explain(error: unknown): unknown;
  /** Gives the right back. Never rejects. */
  end(): Promise<void>;
}

/** Takes the lead of a bus once it is free. Without a bus it returns at once. */
export async function takeLead(
  bus: TrainingBus | undefined,
  { signal, report }: { signal?: AbortSignal; report?: Report },
): Promise<Lead> {
  if (!bus) return { signal, explain: (error) => error, end: async () => undefined };
  const say = makeSay(report);
  let reason: string | undefined;
  let isPatient = true;
  const tell = () => {
    if (reason !== undefined) say(`${reason}: standing by, to go on from the newest checkpoint`);
  };
  const waiting = setTimeout(() => {
    isPatient = false;
    tell();
  }, PATIENCE_MS);
  let leadership: Leadership;
  try {
    leadership = await bus.lead(`${hostname()}/${process.pid}`, signal, (text) => {
      reason = text;
      if (!isPatient) tell();
    });
  } finally {
    clearTimeout(waiting);
  }
  const lost = leadership.signal;
  return {
    signal: signal ? AbortSignal.any([signal, lost]) : lost,
    explain: (error) => {
      // The caller's abort takes precedence.
      if (!lost.aborted || signal?.aborted) return error;
      return lost.reason;
    },
    end: () => leadership.release(),
  };
}
