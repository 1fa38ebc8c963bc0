import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { listTrainableArchitectures } from "../packages/engine/src/trainable-architectures.js";

const root = join(import.meta.dirname, "..");
const read = (path: string) => readFileSync(join(root, path), "utf8");

/** Entries of a page: what follows "- " up to the next. */
const listEntries = (page: string) => read(page).split(/\n(?=- |#|\n)/);

const isPath = (text: string) =>
  /^[\w.-]+(\/[\w.*-]+)*\/?$/.test(text) && (text.includes("/") || /\.(ts|md|cc|h|json|mjs)$/.test(text));
const starts = new Set(readdirSync(root));

/** The paths that an entry names. A bare file name stands in the folder of the path before it. */
function listPaths(entry: string): { path: string; isBare: boolean }[] {
  let folder = "";
  return [...entry.matchAll(/`([^`\n]+)`/g)]
    .map(([, text]) => text!)
    .filter(isPath)
    .flatMap((path) => {
      const [first = ""] = path.split("/");
      // `src/...` of a package that the sentence names, and what a user writes (`./mine.ts`, `tools.yaml`), is no path of ours.
      if (path.includes("/") && !starts.has(first)) return [];
      const isBare = !path.includes("/") && !starts.has(path);
      const whole = isBare ? join(folder, path) : path;
      if (whole.includes("/")) folder = dirname(whole);
      return [{ path: whole, isBare }];
    });
}

/** Files below a folder, without what is installed or built. */
function listFiles(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return /^(node_modules|dist|build|fixtures)$/.test(entry.name) ? [] : listFiles(path);
    return entry.isFile() ? [path] : [];
  });
}
const files = ["packages", "apps", "native/src", "tests/clients"].flatMap(listFiles);
const isSource = (file: string) => /\.(tsx?|cc|h)$/.test(file) && !/\.test\.ts$|\/testing\//.test(file);
const sources = new Map(files.filter(isSource).map((file) => [file, read(file)]));

describe("AGENTS.md", () => {
  it("names files that are there", () => {
    // A file that an entry names without its folder, where no path stands before it.
    const names = new Set(files.map((file) => basename(file)));
    const missing = listEntries("AGENTS.md")
      .flatMap((entry) => listPaths(entry))
      .filter(({ path, isBare }) => !existsSync(join(root, path)) && !(isBare && names.has(basename(path))));
    expect(missing).toEqual([]);
  });

  it("is short", () => {
    expect(read("AGENTS.md").split(/\s+/).length).toBeLessThan(1126);
  });

  // The names that a newcomer copies stand in the files that AGENTS.md names, and otherwise only in exports.
  it.each<[title: string, names: RegExp, folder?: string]>([
    ["A tool", /\bclass CalculatorTool\b|#CalculatorTool\b|calculator-tool\.js/],
    ["An interaction", /\bclass SimulatedUserInteraction\b|#SimulatedUserInteraction\b|simulated-user-interaction\.js/],
    ["A format of tool calls", /\bqwen3_coder\b|\bqwen3Coder\b|qwen3-coder\.js/],
    ["A loss", /"cispo"|\bcispo:|\bcispoLoss\b/],
    ["A term of the loss", /\bmakeReferenceTerm\b/],
    ["An estimator", /"opo"|\bopo:|\bestimateOpo\b/],
    ["A metric", /engine\/(\{\w+(,\w+)*,)?reused_tokens/],
    ["A page of the viewer", /\bEnvironmentPage\b|\benvironments\.describe\b/],
    // Other folders hold the key's use.
    ["A config key", /\bupdateKlRatio\b|\bupdate_kl_ratio\b/, "packages/trainer/src/config/"],
    ["An architecture", /"qwen3"|, qwen3,/],
    ["A client of the endpoint", /\banthropic\b/, "tests/clients/"],
    ["A rule of the coach", /\brewardRules\b/],
    ["A check of `cria check-model`", /\bspeedCheck\b|checks\/speed\.js/],
  ])("%s: its places are the named ones", (title, name, folder = "") => {
    const entry = listEntries("AGENTS.md").find((text) => text.startsWith(`- ${title}`))!;
    const named = listPaths(entry).map(({ path }) => path);
    const isExporting = (file: string) => /\/(index|internal)\.ts$/.test(file);
    const isIts = ([file, text]: [string, string]) => file.startsWith(folder) && name.test(text) && !isExporting(file);
    const places = [...sources].filter(isIts).map(([file]) => file);
    expect(places.length).toBeGreaterThan(0);
    expect(places.filter((file) => !named.includes(file))).toEqual([]);
  });
});

it("native/AGENTS.md names files that are there", () => {
  const named = [...read("native/AGENTS.md").matchAll(/`((?:\w[\w.-]*\/)+[\w.-]*)`/g)].map(([, path]) => path!);
  expect(named.length).toBeGreaterThan(10);
  const places = ["", "native", "native/src", "native/kernels"];
  expect(named.filter((path) => !places.some((place) => existsSync(join(root, place, path))))).toEqual([]);
});

it("pages name the architectures that the addon trains", () => {
  const [, first] = /dense ones of ([^;]*?) train/.exec(read("README.md").replace(/\s+/g, " "))!;
  const [, own] = /dense models of ([^|]*)/.exec(read("docs/own-model.md"))!;
  for (const page of [first, own]) expect(page!.match(/[\w-]+(?=`)/g)).toEqual(listTrainableArchitectures());
});
