import { CriaError, TokenizerError, ToolError } from "@cria/core";

/** Codes of errors about an image file. */
const imageFaults: readonly string[] = ["data/bad-image", "engine/bad-image"];

/** True if the error says that an image file is unusable. It fails only the conversations that show the image. */
export function isBadImage(error: unknown): error is CriaError {
  return attempt(() => error instanceof CriaError && imageFaults.includes(error.code));
}

/**
 * True if the error ends the run: errors of config, data and engine, and broken invariants. Errors of tools,
 * interactions, texts, images and user code fail only their conversation.
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

/** Untrusted code may throw an object whose inspection throws. */
function attempt(look: () => boolean): boolean {
  try {
    return look();
  } catch {
    return false;
  }
}
