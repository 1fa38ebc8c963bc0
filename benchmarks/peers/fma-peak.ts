import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { cached } from "../cache.js";
import { readMachine } from "../machine.js";

/**
 * F32 operations per second of this many threads that only multiply and add; compiled for this machine the first time.
 */
export async function measureFmaPeak(threads: number, seconds: number): Promise<number> {
  const program = await cached(join("fma-peak", readMachine().kind), (temporary) => {
    const source = join(import.meta.dirname, "fma-peak.cc");
    const flags = ["-O3", "-march=native", "-std=c++17", "-pthread"];
    execFileSync(process.env.CXX ?? "c++", [...flags, source, "-o", temporary], {
      stdio: ["ignore", "inherit", "inherit"],
    });
  });
  return Number(execFileSync(program, [String(threads), String(seconds)], { encoding: "utf8" }));
}
