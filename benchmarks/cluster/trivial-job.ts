import type { JobKind } from "@cria/cluster";
import { z } from "zod";

/** Nothing but its way: what a job costs the bus. */
export const trivialJob: JobKind<{ index: number; text: string }, { index: number }> = {
  name: "score",
  payload: z.object({ index: z.int(), text: z.string() }),
  value: z.object({ index: z.int() }),
};
