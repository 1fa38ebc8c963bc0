import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { type Finding, other } from "./finding.js";
import type { CheckJob } from "./model-check.js";
import type { RunCheck } from "./run-check.js";

/** Messages from the child, over its channel. */
export type ChildMessage =
  | { type: "begin"; row: string }
  | { type: "advance"; share: number }
  | { type: "done"; findings: Finding[] };

export interface ChildJob extends CheckJob {
  check: string;
}

/**
 * Runs a check in a separate process: llama.cpp ends the process for many kinds of damage, and so does a system without
 * memory. The row being computed then reports how the process ended.
 */
export const runInChild: RunCheck = (check, job, events, signal) =>
  new Promise((resolve, reject) => {
    const child = startChild({ ...job, check: check.name });
    let row = check.name;
    let findings: Finding[] | null = null;
    let said = "";
    child.stderr!.setEncoding("utf8").on("data", (text: string) => {
      said = (said + text).slice(-2000);
    });
    const stop = () => child.kill("SIGKILL");
    signal?.addEventListener("abort", stop, { once: true });
    if (signal?.aborted) stop();
    child.on("message", (message: ChildMessage) => {
      if (message.type === "begin") {
        row = message.row;
        events.begin(row);
      } else if (message.type === "advance") events.advance(message.share);
      else findings = message.findings;
    });
    child.on("error", reject);
    child.on("close", (code, killedBy) => {
      signal?.removeEventListener("abort", stop);
      if (signal?.aborted) reject(signal.reason as Error);
      else resolve(findings ?? [describeDeath(row, killedBy ?? `exit code ${code}`, said)]);
    });
  });

export function describeDeath(row: string, end: string, said: string): Finding {
  const lines = said
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
  const last = lines.findLast((line) => /error|assert|terminate/i.test(line)) ?? lines.at(-1) ?? "";
  const found = `the process that tried it ended: ${[end, last].filter(Boolean).join(": ")}`;
  const remedy =
    end === "SIGKILL"
      ? "the system ended it, most likely for lack of memory: close other programs, or choose a smaller model"
      : "fetch or convert the file again; if that changes nothing, report this";
  return other("falls short", row, found, remedy);
}

/** The child is a separate file in dist; from sources Node needs the loader of TypeScript. */
function startChild(job: ChildJob): ChildProcess {
  const here = dirname(fileURLToPath(import.meta.url));
  const built = join(here, "check-model-child.js");
  const program = existsSync(built) ? [built] : [...readSourceFlags(), join(here, "child.ts")];
  return spawn(process.execPath, [...program, JSON.stringify(job)], {
    env: { ...process.env, ...chooseGpu(job.gpu), GGML_NO_BACKTRACE: "1", NODE_OPTIONS: "" },
    stdio: ["ignore", "ignore", "pipe", "ipc"],
  });
}

/** Makes only one GPU visible, because the engine takes the first one. */
function chooseGpu(gpu: number | null): NodeJS.ProcessEnv {
  if (gpu === null) return {};
  const visible = process.env.CUDA_VISIBLE_DEVICES?.split(",") ?? [];
  return { CUDA_VISIBLE_DEVICES: visible[gpu] ?? String(gpu) };
}

function readSourceFlags(): string[] {
  const loader = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;
  return ["--conditions=cria-source", "--import", loader];
}
