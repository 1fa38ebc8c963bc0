import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, it } from "vitest";

// Counts the modules that a program loads when it imports the built packages, as users have them. Not the time, in which machines differ.
const root = join(import.meta.dirname, "..");
mkdirSync(join(import.meta.dirname, "build"), { recursive: true });
const folder = mkdtempSync(join(import.meta.dirname, "build", "loading-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** Modules of Cria and of others; a chunk of a package is one. */
const MOST_MODULES = 55;
/** Not minified: what V8 reads. */
const MOST_BYTES = 650_000;

/** Writes a line for each module that is loaded: its address, and the length of its source. */
const hooks = `
import { appendFileSync } from "node:fs";
export async function load(url, context, next) {
  const loaded = await next(url, context);
  if (url.startsWith("file:")) appendFileSync(process.env.MODULES, \`\${loaded.source?.length ?? 0} \${url}\\n\`);
  return loaded;
}`;

/** The files that a program loads, with their sizes, itself left out. */
function listLoaded(program: string): { file: string; bytes: number }[] {
  const [entry, list, register] = ["entry.mjs", "modules.txt", "register.mjs"].map((name) => join(folder, name));
  writeFileSync(entry!, program);
  writeFileSync(list!, "");
  const address = `data:text/javascript,${encodeURIComponent(hooks)}`;
  writeFileSync(register!, `import { register } from "node:module"; register(${JSON.stringify(address)});`);
  const env = { ...process.env, MODULES: list };
  const { status, stderr } = spawnSync(process.execPath, ["--import", register!, entry!], { env, encoding: "utf8" });
  expect(status, stderr).toBe(0);
  return readFileSync(list!, "utf8")
    .trim()
    .split("\n")
    .map((line) => /^(\d+) (.*)$/.exec(line)!)
    .map(([, bytes, url]) => ({ bytes: Number(bytes), file: fileURLToPath(url!) }))
    .filter(({ file }) => !file.startsWith(folder));
}

const describeFile = (file: string) =>
  /node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*node_modules)/.exec(file)?.[1] ?? relative(root, file);

it('import { defineTask, tool } from "cria" loads little code, and of other people only what is small', () => {
  const loaded = listLoaded('import { defineTask, tool } from "cria"; if (!defineTask || !tool) throw new Error();');
  expect(loaded.length).toBeGreaterThan(5);
  const foreign = new Set(
    loaded.map(({ file }) => describeFile(file)).filter((name) => !/^(packages|apps)\//.test(name)),
  );
  // Neither zod nor a parser of YAML, templates or Parquet, nor the addon.
  expect([...foreign]).toEqual(["@ai-sdk/provider"]);
  expect(loaded.map(({ file }) => describeFile(file)).length).toBeLessThan(MOST_MODULES);
  expect(loaded.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThan(MOST_BYTES);
});

it("the code that runs a task is loaded with its first call", () => {
  const loaded = listLoaded(
    `import { train } from "cria";
await train({ model: "no.gguf" }).then(() => { throw new Error(); }, () => {});`,
  );
  const packages = loaded.map(({ file }) => relative(root, file));
  expect(packages).toEqual(expect.arrayContaining([expect.stringMatching(/^packages\/engine\/dist\//)]));
});

it("a Node that cannot require ES modules has files of its own, and each class once", () => {
  const file = join(folder, "required.cjs");
  writeFileSync(
    file,
    `const { defineTask, loadPolicy, Task, tool } = require("cria");
const twice = tool({
  name: "twice",
  description: "Doubles.",
  inputSchema: { type: "object", properties: { x: { type: "number" } } },
  execute: ({ x }) => 2 * x,
});
const task = defineTask({ rows: [{ question: "2 * 3?" }], tools: [twice], reward: () => 1 });
const { trainConfigSchema } = require("cria/config");
(async () => {
  const error = await loadPolicy("no.gguf").catch((thrown) => thrown);
  console.log(await twice({ x: 3 }), task instanceof Task, error.code, trainConfigSchema !== undefined);
})();\n`,
  );
  const { stdout, stderr } = spawnSync(process.execPath, ["--no-experimental-require-module", file], {
    encoding: "utf8",
  });
  expect(stdout.trim(), stderr).toBe("6 true engine/file-not-found true");
});
