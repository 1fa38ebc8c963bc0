import { afterEach, beforeEach, vi } from "vitest";

/** What the commands of each test print; their exit codes are forgotten afterwards. Call it once, at the top of a file. */
export function captureOutput(): { stdout: string; stderr: string } {
  const output = { stdout: "", stderr: "" };
  beforeEach(() => {
    output.stdout = "";
    output.stderr = "";
    vi.spyOn(console, "log").mockImplementation((text) => {
      output.stdout += `${text}\n`;
    });
    vi.spyOn(process.stderr, "write").mockImplementation((text) => {
      output.stderr += text;
      return true;
    });
  });
  afterEach(() => {
    vi.restoreAllMocks();
    process.exitCode = undefined;
  });
  return output;
}
