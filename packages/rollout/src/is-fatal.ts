import { CriaError, TokenizerError, ToolError } from "@cria/core";

/** What is wrong with one image's file. */
const imageFaults: readonly string[] = ["data/bad-image", "engine/bad-image"];

/** Whether an error says that an image's file cannot be used: it breaks the conversations that show it, and no others. */
export function isBadImage(error: unknown): error is CriaError {
  return attempt(() => error instanceof CriaError && imageFaults.includes(error.code));
}

/**
 * Whether an error ends the run. Errors of one conversation do not: of its tools, its interaction, its texts and images, or of
 * code that others wrote. Errors of the config, the data and the engine, and broken invariants, do.
 */
export function isFatal(error: unknown): boolean {
  return attempt(
    () =>
      error instanceof CriaError &&
      !(error instanceof ToolError) &&
      !(error instanceof TokenizerError) &&
      !isBadImage(error),
  );
}

/** Others may throw an object that cannot be looked at. */
function attempt(look: () => boolean): boolean {
  try {
    return look();
  } catch {
    return false;
  }
}
