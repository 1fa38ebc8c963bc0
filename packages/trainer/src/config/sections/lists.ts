import { z } from "zod";

/** One path, or a list of them. */
export const files = z
  .union([z.string(), z.array(z.string())])
  .transform((value) => (Array.isArray(value) ? value : [value]));
