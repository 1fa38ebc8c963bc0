import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { getRuntimeInfo } from "@cria/engine";
import { getProgram } from "../llama-cpp.js";

export interface BatchedBenchOptions {
  path: string;
  threads: number;
  flashAttention: boolean;
  contextSize: number;
  promptLength: number;
  steps: number;
  sequences: readonly number[];
}

/**
 * llama.cpp's own measure of batched decoding: only llama_decode, without sampling. One process for all numbers of
 * sequences; the prompt is shared. Returns tokens per second for each number of sequences.
 */
export async function runBatchedBench(
  options: BatchedBenchOptions,
  log: (text: string) => void,
): Promise<Map<number, number>> {
  const { path, threads, flashAttention, contextSize, promptLength, steps, sequences } = options;
  const sources = ["tools/batched-bench/batched-bench.cpp", join(import.meta.dirname, "batched-bench-main.cc")];
  const program = await getProgram({ name: "llama-batched-bench-flushed", sources, common: true }, log);
  const args = ["-m", path, "-t", threads, "-tb", threads, "-ngl", 0, "-fa", flashAttention ? "on" : "off", "-pps"];
  args.push("-c", contextSize * Math.max(...sequences), "-npp", promptLength, "-ntg", steps);
  args.push("-npl", sequences.join(","), "--output-format", "jsonl");
  // It looks for the backends' libraries in the folder that it runs in.
  const { stdout, stderr } = await promisify(execFile)(program, args.map(String), {
    cwd: getRuntimeInfo().librariesFolder,
  });
  const speeds = readSpeeds(`${stdout}\n${stderr}`);
  if (!sequences.every((count) => speeds.has(count)))
    throw new Error(`llama-batched-bench gave no result for ${sequences.join(", ")} sequences:\n${stderr}`);
  return speeds;
}

function readSpeeds(output: string): Map<number, number> {
  const lines = output.split("\n").filter((text) => text.startsWith("{"));
  return new Map(
    lines.map((line) => {
      const { pl, speed_tg } = JSON.parse(line) as { pl: number; speed_tg: number };
      return [pl, speed_tg];
    }),
  );
}
