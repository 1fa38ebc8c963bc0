import { hostname } from "node:os";
import { makeSay, type Report } from "../events.js";
import type { Leadership, TrainingBus } from "./training-bus.js";

/** How long it takes until people are told what is waited for, in milliseconds. */
const PATIENCE_MS = 2000;

/** What a training that shares its work runs under. */
export interface Lead {
  /** The caller's signal, and that of the right to coordinate. */
  signal: AbortSignal | undefined;
  /** What a failure of the training is: once the right is lost, that it was lost is why whatever fails then fails. */
  explain(error: unknown): unknown;
  /** Gives the right back. Never rejects. */
  end(): Promise<void>;
}

/** Takes the lead of a bus, once nobody else has it. Without a bus there is nothing to wait for. */
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
      // The caller's own wish counts first.
      if (!lost.aborted || signal?.aborted) return error;
      return lost.reason;
    },
    end: () => leadership.release(),
  };
}
