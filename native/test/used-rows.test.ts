import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";

/** used_rows.cc: products of a batch of which some rows are not used. */
const build = join(import.meta.dirname, "..", "build");

interface Checked {
  name: string;
  problem: string;
}

function run(command: string, args: readonly string[], kernel?: string): string {
  const env = { ...process.env, ...(kernel === undefined ? {} : { CRIA_CPU_KERNEL: kernel }) };
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: "utf8", env });
  if (status !== 0) throw new Error(`${command}: ${stdout}${stderr}`);
  return stdout;
}

beforeAll(() => {
  run("cmake", ["--build", build, "--target", "used_rows"]);
});

const check = (kernel?: string): Checked[] =>
  run(join(build, "used_rows"), [], kernel)
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Checked);

describe.each([["the machine's kernel"], ["portable"]])("rows that are not used, %s", (kernel) => {
  it("are left out, and change no bit of the others", () => {
    const checked = check(kernel === "portable" ? kernel : undefined);
    expect(checked.filter(({ problem }) => problem !== "")).toEqual([]);
    expect(checked.length).toBeGreaterThan(45);
  });
});
