import { ToolError } from "@cria/core";

/**
 * Loads a heavy library only when a tool that needs it is used, so that importing this package stays cheap.
 * @throws ToolError that names the package when it is not installed.
 */
export async function importOptional<T>(load: () => Promise<T>, packageName: string, neededBy: string): Promise<T> {
  try {
    return await load();
  } catch (cause) {
    throw new ToolError(`cannot be loaded, but ${neededBy} needs it`, {
      code: "tool/missing-package",
      subject: `package ${packageName}`,
      received: (cause as Error).message,
      remedy: `npm install ${packageName}`,
      cause,
    });
  }
}
