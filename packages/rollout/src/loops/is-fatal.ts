import { CriaError, TokenizerError, ToolError } from "@cria/core";

/**
 * Whether an error ends the run. Errors of one conversation do not: of its tools, its interaction, its texts, or of
 * code that others wrote. Errors of the config, the data and the engine, and broken invariants, do.
 */
export function isFatal(error: unknown): boolean {
  try {
    return error instanceof CriaError && !(error instanceof ToolError) && !(error instanceof TokenizerError);
  } catch {
    // Others threw an object that cannot be looked at.
    return false;
  }
}
