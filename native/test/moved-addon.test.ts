import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { findBins } from "../scripts/build-llama.mjs";

const root = realpathSync(join(import.meta.dirname, "..", ".."));
const addon = join("native", "build", "Release", "cria.node");
const bins = relative(root, realpathSync(findBins()));
const moved = realpathSync(mkdtempSync(join(tmpdir(), "cria-moved-")));
afterAll(() => rmSync(moved, { recursive: true }));

/** The folder where a child process finds llama.cpp, and the libraries of this clone that it has mapped. */
function load(): { folder: string; mapped: string[] } {
  const program = `
    const module = { exports: {} };
    process.dlopen(module, process.argv[1]);
    const maps = require("node:fs").readFileSync("/proc/self/maps", "utf8").match(/\\/.*\\.(so|node)\\b.*/g);
    console.log(JSON.stringify({ folder: module.exports.runtimeInfo().librariesFolder, mapped: [...new Set(maps)] }));`;
  const text = execFileSync(process.execPath, ["-e", program, join(moved, addon)], { encoding: "utf8", stdio: "pipe" });
  return JSON.parse(text);
}

describe.runIf(process.platform === "linux")("a clone that is moved", () => {
  it("finds its own libraries, and never those of the old place", () => {
    mkdirSync(dirname(join(moved, addon)), { recursive: true });
    cpSync(join(root, addon), join(moved, addon));
    // The old folder still exists, but without libraries next to the addon nothing loads.
    expect(load).toThrow(/libllama/);
    cpSync(join(root, bins), join(moved, bins), { recursive: true });
    const { folder, mapped } = load();
    expect(realpathSync(folder)).toBe(join(moved, bins));
    expect(mapped.filter((file) => file.startsWith(root))).toEqual([]);
    expect(mapped.some((file) => file.startsWith(join(moved, bins)))).toBe(true);
  });
});
