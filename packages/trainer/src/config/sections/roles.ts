import { z } from "zod";

/** Names of roles with an adapter each; parts of the names of files and metrics. */
export const rolesSchema = z
  .array(z.string().regex(/^[\w-]{1,64}$/, 'a name of 1 to 64 letters, digits, "_" and "-"'))
  .min(1)
  .refine(
    (roles) => new Set(roles.map((role) => role.toLowerCase())).size === roles.length,
    "names that differ in more than capital letters",
  );
