import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { findErrorWords } from "./find-error-words.js";

const root = join(import.meta.dirname, "..");

/** Files whose subject is the words, with the reason. */
const reasons: Record<string, string> = {
  "packages/tools/src/schema.test.ts": "the policy reads what is wrong with its arguments",
};

describe("assertions of an error's words", () => {
  it("are in no test: an error has a code, and fields with the values that it names", () => {
    const args = ["ls-files", "--cached", "--others", "--exclude-standard", "*.test.ts", "*.test.tsx"];
    const files = execFileSync("git", args, { cwd: root, encoding: "utf8", maxBuffer: 2 ** 26 })
      .split("\n")
      .filter((file) => file !== "" && existsSync(join(root, file)));
    expect(files.length).toBeGreaterThan(400);
    const found = files.flatMap((file) => {
      const source = readFileSync(join(root, file), "utf8");
      if (!/toThrow|message|summary|String\(/.test(source)) return [];
      return findErrorWords(source, file).map((words) => `${file}:${words}`);
    });
    const isAllowed = (words: string) => Object.keys(reasons).some((file) => words.startsWith(`${file}:`));
    expect(
      found.filter((words) => !isAllowed(words)),
      "assert code, subject and received: toMatchObject({ code }), toThrow(expect.objectContaining({ code }))",
    ).toEqual([]);
    expect(Object.keys(reasons).filter((file) => !found.some((words) => words.startsWith(`${file}:`)))).toEqual([]);
  });

  it.each([
    "expect(work).toThrow(/rows: is missing/)",
    'expect(work).toThrow("is missing")',
    "await expect(work()).rejects.toThrow(/line \\d: was never written[\\s\\S]*a file/)",
    "expect(work).toThrow(new RegExp(`^a: has no value`))",
    'expect(error.message).toContain("is not there")',
    "expect(String(error)).toMatch(/cannot be read/)",
    'expect(error).toMatchObject({ code: "a/b", message: expect.stringContaining("cannot be read") })',
    "const why = /has no value/;\nexpect(work).toThrow(why);",
    'it.each([["a", /has no value/]])("%s", (name, why) => expect(work).toThrow(why));',
    "for (const [given, why] of [[1, /has no value/]]) expect(() => work(given)).toThrow(why);",
    "const refuse = (given, why) => expect(() => work(given)).toThrow(why);\nrefuse(1, /has no value/);",
  ])("are found: %s", (source) => expect(findErrorWords(source)).toHaveLength(1));

  it.each([
    'expect(work).toThrow(expect.objectContaining({ code: "a/b", expected: "a file that is there" }))',
    "expect(work).toThrow(/rows\\.jsonl, line 7/)",
    'expect(work).toThrow("ENOENT")',
    "expect(work).toThrow(TypeError)",
    "expect(work).not.toThrow(/the secret word/)",
    'const work = () => { throw new Error("no such column"); };\nexpect(work).toThrow("no such column");',
    'expect(chat.message).toEqual({ role: "user", content: "say this again" })',
    'expect(text).toContain("is missing")',
  ])("are not: %s", (source) => expect(findErrorWords(source)).toEqual([]));
});
