import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "..");

/** Comments begin with a subject or a noun: a reader has to solve a relative clause that begins with one of these. */
const relative = /^(What|Whatever|Of|How|Where|Wherever|Who|Whoever|Whose|Whom|Which)\b/;

/** Lines of comments by file extension: the pattern's group holds the text. `opens`: the line begins a comment. */
const hash = [{ pattern: /^\s*#+\s+(.*)$/, opens: false }];
const slashes = [
  { pattern: /^\s*\/\*\*?\s+(.*)$/, opens: true },
  { pattern: /^\s*\/\/[/!<]*\s+(.*)$/, opens: false },
  // Behind code.
  { pattern: /[;,{}()[\]]\s+\/\/[/!<]*\s+(.*)$/, opens: true },
];
const syntaxes: Record<string, typeof hash> = {
  ...Object.fromEntries(
    [".ts", ".tsx", ".mts", ".mjs", ".cjs", ".js", ".css", ".h", ".cc"].map((end) => [end, slashes]),
  ),
  ...Object.fromEntries([".py", ".sh", ".yaml", ".yml", ".txt"].map((end) => [end, hash])),
};

/** Lists the lines, from 1, at which a comment begins with a relative clause. Questions are none. */
function findRelative(text: string, syntax: typeof hash): number[] {
  const found: number[] = [];
  let isInside = false;
  for (const [i, line] of text
    .replace(/\/\*\*?\n\s*\* /g, "\n/** ")
    .split("\n")
    .entries()) {
    const hit = syntax.find(({ pattern }) => pattern.test(line));
    const said = hit?.pattern.exec(line)?.[1] ?? "";
    if (hit && (hit.opens || !isInside) && relative.test(said) && !said.trimEnd().endsWith("?")) found.push(i + 1);
    isInside = hit !== undefined;
  }
  return found;
}

/** Exceptions by file: so many comments at most. */
const allowed: Record<string, number> = {
  // An example of this test.
  "tests/comments.test.ts": 1,
};

describe("comments that begin with a relative clause", () => {
  it("are in no file", () => {
    const args = ["ls-files", "--cached", "--others", "--exclude-standard"];
    const files = execFileSync("git", args, { cwd: root, encoding: "utf8", maxBuffer: 2 ** 26 })
      .split("\n")
      .filter((file) => extname(file) in syntaxes && existsSync(join(root, file)));
    expect(files.length).toBeGreaterThan(1000);
    const found = files.flatMap((file) => {
      const lines = findRelative(readFileSync(join(root, file), "utf8"), syntaxes[extname(file)]!);
      return lines.length > (allowed[file] ?? 0) ? lines.map((line) => `${file}:${line}`) : [];
    });
    expect(found, 'say it with a subject and a verb, or as a noun: "Transient failures."').toEqual([]);
  });

  it.each([
    ["/** What may be otherwise in a minute. */", [1]],
    ["/**\n * Of each trajectory the index.\n */", [2]],
    ["x;\n// Who asks is answered.\n", [2]],
    ["int a;  // Of each row.\n// Where it ends.", [1]],
    ["// A sentence of two lines.\n// Where the second one begins so.", []],
    ["// What for?", []],
    ['const text = "What is this"; // Offered.', []],
    ["/** Whether it ends. */", []],
  ])("are found: %j", (text, lines) => expect(findRelative(text, slashes)).toEqual(lines));

  it("are found behind #", () => expect(findRelative("a: 1\n# What it is.\n# How.\n", hash)).toEqual([2]));
});
