// Configs and commands that pages print. Links and types of programs are tests/docs.test.ts's.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { configFiles, makeReferenceFiles } from "@cria/trainer/internal";
import { Ajv, type ValidateFunction } from "ajv";
import formats from "ajv-formats";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { readSnippets, type Snippet } from "../../../tests/snippets.js";
import { commands } from "./commands/all-commands.js";
import { checkCommandLine } from "./commands/check-command-line.js";

const root = join(import.meta.dirname, "..", "..", "..");
const listFolder = (folder: string) => readdirSync(join(root, folder)).map((name) => `${folder}/${name}`);
const pages = ["README.md", ...listFolder("docs").filter((file) => file.endsWith(".md"))].concat(
  ["packages", "examples"].flatMap(listFolder).map((folder) => `${folder}/README.md`),
);
const snippets = pages
  .filter((page) => existsSync(join(root, page)))
  .flatMap((page) => readSnippets(readFileSync(join(root, page), "utf8")).map((snippet) => ({ ...snippet, page })));

type Placed = Snippet & { page: string };
const choose = (...languages: string[]) => snippets.filter(({ language }) => languages.includes(language));
const place = ({ page, line }: Placed) => `${page}:${line}`;

describe("configs in pages", () => {
  const ajv = new Ajv({ allErrors: true, allowUnionTypes: true, strict: false });
  formats.default(ajv);
  const schemas = makeReferenceFiles();
  const validators = configFiles.map(
    ({ name }): ValidateFunction => ajv.compile(JSON.parse(schemas[`schema/${name}.json`]!)),
  );

  /** Errors in a part of a config; required keys may be in another part. */
  const findErrors = (validate: ValidateFunction, content: unknown) => {
    validate(content);
    const errors = (validate.errors ?? []).filter(({ keyword }) => keyword !== "required");
    return errors.map(({ instancePath, message }) => `${instancePath} ${message}`);
  };

  it.each(choose("yaml").map((snippet) => [place(snippet), snippet.text]))(
    "%s has keys and values of a config",
    (_, text) => {
      const content: unknown = parse(text);
      // A comment for editors alone.
      if (content === null) return;
      const errors = validators.map((validate) => findErrors(validate, content)).sort((a, b) => a.length - b.length);
      expect(errors[0]).toEqual([]);
    },
  );

  it.each(choose("json").map((snippet) => [place(snippet), snippet.text]))("%s is JSON", (_, text) => {
    expect(() => JSON.parse(text)).not.toThrow();
  });

  it("an unknown key is found", () => {
    for (const validate of validators) expect(findErrors(validate, { data: { trian_files: "a" } })).not.toEqual([]);
  });
});

describe("commands in pages", () => {
  const program = { subCommands: commands } as unknown as Parameters<typeof checkCommandLine>[0];
  const lines = choose("", "sh", "bash").flatMap((snippet) =>
    listCommands(snippet.text).map((words) => ({ words, snippet })),
  );

  it("are read as a shell reads them", () => {
    const text = `$ X=1 npx cria a 'b c' \\\n  --d "e" # comment\necho f | cria g > h && cria i\nnpx criab`;
    expect(listCommands(text)).toEqual([["a", "b c", "--d", "e"], ["g"], ["i"]]);
  });

  it("are many", () => expect(lines.length).toBeGreaterThan(60));

  it("exist, with their options and arguments", () => {
    const errors = lines.flatMap(({ words, snippet }) => {
      try {
        checkCommandLine(program, words);
        return [];
      } catch (error) {
        return [`${place(snippet)}: cria ${words.join(" ")}: ${(error as Error).message}`];
      }
    });
    expect(errors).toEqual([]);
  });
});

/** The words behind each `cria` of a shell's lines. */
function listCommands(text: string): string[][] {
  return text
    .replaceAll(/\\\n/g, " ")
    .split("\n")
    .flatMap((line) => splitCommands(line.replace(/^[\w:~/-]*\$ /, "")))
    .flatMap((words) => {
      const begin = words.findIndex((word) => !/^[A-Z_]+=/.test(word) && word !== "npx");
      return words[begin] === "cria" ? [words.slice(begin + 1)] : [];
    });
}

/** The commands of a line, as words without their quotes: a comment ends the line, and a redirection a command's words. */
function splitCommands(line: string): string[][] {
  const commands: string[][] = [[]];
  let redirected = false;
  for (const [token] of line.matchAll(/&&|[|;>]|(?:"[^"]*"|'[^']*'|[^\s"'|;&>])+/g)) {
    if (token.startsWith("#")) break;
    if (token === ">") redirected = true;
    else if (/^(?:&&|[|;])$/.test(token)) {
      commands.push([]);
      redirected = false;
    } else if (!redirected) commands.at(-1)!.push(token.replaceAll(/["']/g, ""));
  }
  return commands;
}
