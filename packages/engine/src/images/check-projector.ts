import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { EngineError, writeFileAtomically } from "@cria/core";
import { hashFile, userCacheFolder } from "@cria/core/internal";
import { projectorTrial } from "@cria/native";
import { wrapNativeError } from "../native.js";
import type { NativeProjectorOptions } from "../native-types.js";

export interface ProjectorCheck {
  /** The model that provides the vocabulary. */
  model: { path: string; architecture: string };
  projector: NativeProjectorOptions;
  /** SHA-256 of the projector's file. */
  hash: string;
  /** In milliseconds. Default ten minutes. */
  timeLimit?: number;
}

/**
 * Tries a projector's file in a child process, once per file: llama.cpp trusts the file's content, and ends the process
 * where it is wrong. Files that passed are remembered in ~/.cache/cria, or below XDG_CACHE_HOME.
 * @throws EngineError that says what is wrong with the file.
 */
export async function checkProjector(check: ProjectorCheck): Promise<void> {
  const { projector, hash, model } = check;
  const library = await hashFile(projector.library);
  const limits = [projector.minTokens, projector.maxTokens];
  const passed = JSON.stringify({ projector: hash, library, architecture: model.architecture, limits });
  const file = userCacheFolder("projectors", `${createHash("sha256").update(passed).digest("hex")}.json`);
  if ((await readFile(file, "utf8").catch(() => null)) === passed) return;
  await tryInChild(check);
  // If the folder cannot be written, the next start only takes longer.
  await writeFileAtomically(file, passed).catch(() => undefined);
}

async function tryInChild({ model, projector, timeLimit = 600_000 }: ProjectorCheck): Promise<void> {
  // One thread: an assertion on another thread would end the child without a message.
  const args = [projectorTrial, model.path, JSON.stringify({ ...projector, threads: 1 })];
  const child = spawn(process.execPath, args, {
    env: { ...process.env, GGML_NO_BACKTRACE: "1", NODE_OPTIONS: "" },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: timeLimit,
    killSignal: "SIGKILL",
  });
  const said = { out: "", err: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    said.out += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    said.err = (said.err + text).slice(-2000);
  });
  const end = await new Promise<string>((resolve) => {
    child.on("error", (error) => resolve(error.message));
    child.on("close", (code, signal) => {
      // Set by the kill at the time limit alone.
      if (child.killed) resolve(`no end within ${timeLimit / 1000} s`);
      else resolve(code === 0 ? "" : (signal ?? `exit code ${code}`));
    });
  });
  if (end !== "") {
    throw new EngineError("crashes the process that checks it", {
      code: "engine/bad-projector",
      subject: projector.path,
      expected: "a projector that llama.cpp can use",
      received: [end, said.err.trim()].filter(Boolean).join(": "),
      remedy:
        "the file is damaged, badly converted, or of a kind that llama.cpp does not support: download or convert it again",
    });
  }
  const problem = JSON.parse(said.out) as ({ message: string } & Record<string, string>) | null;
  if (problem) throw wrapNativeError(Object.assign(new Error(problem.message), problem));
}
