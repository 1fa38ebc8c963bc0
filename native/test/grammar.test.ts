import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";

// grammar_agrees.cc: compares our grammars with llama.cpp's own over the embedded policy's vocabulary. Another GGUF and
// more texts:
// cmake --build native/build --target grammar_agrees && native/build/grammar_agrees <gguf> 100
// native/test/grammars/*.gbnf
const build = join(import.meta.dirname, "..", "build");
const folder = join(import.meta.dirname, "grammars");
const policy = join(import.meta.dirname, "..", "..", "models", "cria-tiny.gguf");
const files = readdirSync(folder).sort();

describe("grammars allow what llama.cpp's allow", () => {
  let lines: { difference: string; places: number }[] = [];
  beforeAll(() => {
    const run = (command: string, args: string[]) => {
      const { status, stdout, stderr } = spawnSync(command, args, { encoding: "utf8" });
      if (status !== 0) throw new Error(`${command}: ${stdout}${stderr}`);
      return stdout;
    };
    run("cmake", ["--build", build, "--target", "grammar_agrees"]);
    const output = run(join(build, "grammar_agrees"), [policy, "10", ...files.map((file) => join(folder, file))]);
    lines = output
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
  });

  it.each(files.map((file, i) => [file, i] as const))("%s", (_, i) => {
    expect(lines[i]!.difference).toBe("");
    expect(lines[i]!.places).toBeGreaterThan(50);
  });
});
