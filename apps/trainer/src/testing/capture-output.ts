import { afterEach, beforeEach, vi } from "vitest";

/** The output of commands in each test; their exit codes are reset afterwards. Call it once, at the top of a file. */
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
