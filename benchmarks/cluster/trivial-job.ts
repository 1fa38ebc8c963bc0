import type { JobKind } from "@cria/cluster";
import { z } from "zod";

/** A job without work, which measures the bus's cost. */
export const trivialJob: JobKind<{ index: number; text: string }, { index: number }> = {
  name: "score",
  payload: z.object({ index: z.int(), text: z.string() }),
  value: z.object({ index: z.int() }),
};
