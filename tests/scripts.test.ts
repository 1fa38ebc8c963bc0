import { execFileSync } from "node:child_process";
import { join, relative } from "node:path";
import ts from "typescript";
import { expect, it } from "vitest";

const root = join(import.meta.dirname, "..");

// Most scripts run at night, and none is compiled: what a package renames would break one unseen.
it("every script is among those whose types are checked", () => {
  const file = join(root, "tsconfig.scripts.json");
  const { config } = ts.readConfigFile(file, ts.sys.readFile);
  const { fileNames, options } = ts.parseJsonConfigFileContent(config, ts.sys, root);
  const checked = new Set(fileNames.map((name) => relative(root, name).replaceAll("\\", "/")));
  const scripts = execFileSync("git", ["ls-files", "*.mjs"], { cwd: root, encoding: "utf8" }).trim().split("\n");
  expect(options.checkJs).toBe(true);
  expect(scripts.length).toBeGreaterThan(50);
  expect(scripts.filter((name) => !checked.has(name))).toEqual([]);
});
