import { ClusterError } from "@cria/core";
import { z } from "zod";
import { type BusStore, changeRecord } from "./bus-store.js";
import { type CheckpointPointer, PROTOCOL } from "./job-bus.js";
import { hashText, readMessage } from "./job-record.js";

const schema = z.object({
  protocol: z.literal(PROTOCOL),
  run: z.string().max(10_000),
  term: z.int().min(0),
  step: z.int().min(0),
  manifest: z.string().regex(/^[0-9a-f]{64}$/),
});

const subject = "the newest checkpoint";
/** Run names may contain characters that keys may not. */
const keyOf = (run: string): string => `checkpoint.${hashText(run)}`;

function read(text: string): CheckpointPointer {
  const { run, term, step, manifest } = readMessage(subject, schema, text);
  return { run, term, step, manifest };
}

function write(pointer: CheckpointPointer): string {
  const text = JSON.stringify({ protocol: PROTOCOL, ...pointer });
  read(text);
  return text;
}

/** Raises the record's term to the given one, so that writes by earlier holders of the lease are refused. */
export async function takeCheckpoint(
  { control }: BusStore,
  run: string,
  term: number,
): Promise<CheckpointPointer | undefined> {
  const { answer } = await changeRecord(control, keyOf(run), (text) => {
    if (text === undefined) return { answer: undefined };
    const found = read(text);
    checkTerm(found, term);
    const taken = { ...found, term };
    return { answer: taken, text: found.term === term ? undefined : write(taken) };
  });
  return answer;
}

export async function nameCheckpoint(
  { control }: BusStore,
  pointer: CheckpointPointer,
): Promise<CheckpointPointer | undefined> {
  const named = write(pointer);
  const { answer } = await changeRecord(control, keyOf(pointer.run), (text) => {
    const before = text === undefined ? undefined : read(text);
    if (before) checkTerm(before, pointer.term);
    return { answer: before, text: named };
  });
  return answer;
}

function checkTerm(found: CheckpointPointer, term: number): void {
  if (found.term <= term) return;
  throw new ClusterError("was written by another coordinator", {
    code: "cluster/stale-checkpoint",
    subject: `${subject} of ${found.run}`,
    expected: `one of term ${term} of the lease, or an earlier one`,
    received: `term ${found.term}, step ${found.step}`,
    remedy: "stop: only the holder of the lease may name it",
  });
}
