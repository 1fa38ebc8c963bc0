import { describe, expect, it } from "vitest";
import { parseYaml } from "./parse-yaml.js";

describe("YAML", () => {
  it("is its value; an alias that refers to something else is a copy of it", () => {
    expect(parseYaml("a: &x [1, 2]\nb: *x")).toEqual({ a: [1, 2], b: [1, 2] });
    expect(parseYaml("")).toBeNull();
  });

  it.each([
    ["an alias to itself in a list", "key: &a [*a]"],
    ["an alias to itself in a mapping", "key: &a\n  more: *a"],
    ["a tag that nobody resolves", "key: !mine 3"],
    ["too many levels", `key: ${"[".repeat(200)}${"]".repeat(200)}`],
    ["more levels than the stack", `key: ${"[".repeat(20_000)}${"]".repeat(20_000)}`],
    ["what does not parse", "key: [1"],
  ])("%s is an error, and nothing is printed", (_, text) => {
    const printed: unknown[] = [];
    const listen = (warning: Error) => printed.push(warning);
    process.on("warning", listen);
    expect(() => parseYaml(text)).toThrow(Error);
    process.off("warning", listen);
    expect(printed).toEqual([]);
  });
});
