import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { cached } from "../cache.js";
import { readMachine } from "../machine.js";

/**
 * The most that this many threads do in a second: operations of multiply-adds in registers, or bytes read from memory.
 * 0: not known for this CPU. Compiled for this machine the first time.
 */
export async function measurePeak(
  kind: "f32" | "int8" | "int16" | "read",
  threads: number,
  seconds: number,
): Promise<number> {
  const program = await cached(join("machine-peaks", readMachine().kind), (temporary) => {
    const source = join(import.meta.dirname, "machine-peaks.cc");
    const flags = ["-O3", "-march=native", "-std=c++17", "-pthread"];
    execFileSync(process.env.CXX ?? "c++", [...flags, source, "-o", temporary], {
      stdio: ["ignore", "inherit", "inherit"],
    });
  });
  return Number(execFileSync(program, [kind, String(threads), String(seconds)], { encoding: "utf8" }));
}
