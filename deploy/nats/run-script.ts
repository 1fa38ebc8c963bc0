import { join } from "node:path";
import { vi } from "vitest";

let runs = 0;

/**
 * Runs a script of this folder as `node SCRIPT ARGS` would, on sources.
 * @returns its output.
 */
export async function runScript(script: string, ...args: string[]): Promise<string> {
  const file = join(import.meta.dirname, script);
  const printed: string[] = [];
  const log = vi.spyOn(console, "log").mockImplementation((line) => void printed.push(`${line}\n`));
  const argv = vi.spyOn(process, "argv", "get").mockReturnValue([process.execPath, file, ...args]);
  try {
    // Each run is another module.
    await import(`${file}?${++runs}`);
    return printed.join("");
  } finally {
    log.mockRestore();
    argv.mockRestore();
  }
}
