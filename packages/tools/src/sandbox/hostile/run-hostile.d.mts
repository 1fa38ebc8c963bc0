import type { PythonSandboxOptions } from "../python-sandbox.js";
import type { Sandbox } from "../sandbox.js";
import type { HostileProgram } from "./javascript-programs.mjs";

type SandboxClass = new (options: PythonSandboxOptions) => Sandbox & { pids: number[] };
interface HostileResult {
  name: string;
  problem: string;
  status: string;
  seconds: number;
  peakMb: number;
  baseMb: number;
}

/** @see run-hostile.mjs */
export const hostileLimits: Record<"javascript" | "python", PythonSandboxOptions>;
export function runHostile(
  programs: readonly HostileProgram[],
  Sandbox: SandboxClass,
  onResult?: (result: HostileResult) => void,
): Promise<string[]>;
export function runBatch(
  language: "javascript" | "python",
  sandbox: Sandbox,
  count?: number,
): Promise<{ right: number; stopped: number; wrong: string[]; slowestS: number }>;
