import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { describe, expect, it } from "vitest";
import { packages } from "../scripts/pack.mjs";

const root = join(import.meta.dirname, "..");

/** Strict options that users may have, with `skipLibCheck` off. */
const strictest: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2022,
  lib: ["lib.es2023.d.ts"],
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  types: ["node"],
  typeRoots: [join(root, "node_modules", "@types")],
  noEmit: true,
  skipLibCheck: false,
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  noPropertyAccessFromIndexSignature: true,
  noImplicitOverride: true,
  noImplicitReturns: true,
  noUnusedLocals: true,
  noUnusedParameters: true,
  isolatedModules: true,
  verbatimModuleSyntax: true,
};

describe("declarations of the built packages", () => {
  it("compile under every strict flag, in ESM and in CommonJS", () => {
    const files = packages.flatMap((folder) => {
      const manifest = JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8"));
      const entries = Object.values<Record<string, { types: string }> | string>(manifest.publishConfig.exports ?? {});
      return entries.flatMap((entry) =>
        typeof entry === "string" ? [] : [entry.import!, entry.require!].map(({ types }) => join(root, folder, types)),
      );
    });
    expect(files.length).toBeGreaterThan(20);
    expect(files.filter((file) => !existsSync(file))).toEqual([]);
    const program = ts.createProgram(files, strictest);
    // Errors in other packages' declarations do not count, so these are not checked: that takes most of the time.
    const sources = program.getSourceFiles().filter(({ fileName }) => !fileName.includes("/node_modules/"));
    expect(sources.length).toBeGreaterThan(files.length);
    const ours = [
      ...program.getOptionsDiagnostics(),
      ...sources.flatMap((source) => [...ts.getPreEmitDiagnostics(program, source)]),
    ].filter(({ file }) => file);
    const shown = ours.map(
      ({ file, messageText }) => `${file!.fileName}: ${ts.flattenDiagnosticMessageText(messageText, " ")}`,
    );
    expect(shown).toEqual([]);
  });
});
