import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { quoteWord } from "../terminal/quote-word.js";

const work = mkdtempSync(join(tmpdir(), "cria-terminal-"));
afterAll(() => rmSync(work, { recursive: true, force: true }));

// The built command line as users run it: `npm test` builds first.
const bin = join(import.meta.dirname, "..", "..", "bin", "cria.mjs");
/** `script` of util-linux gives a program a terminal. */
const hasScript = spawnSync("script", ["--version"]).status === 0;

const LEAVE = "\x1b[?25h\x1b[?1049l";

/** `cria watch` in a separate terminal, after its first drawing. */
async function watch() {
  writeFileSync(join(work, "metrics.jsonl"), '{"training/global_step":1,"rollout/kept":4,"reward/score/mean":0.5}\n');
  const id = join(work, "pid");
  const command = `echo $$ > ${quoteWord(id)}; exec ${[process.execPath, bin, "watch", work].map(quoteWord).join(" ")}`;
  const child = spawn("script", ["-qfec", command, "/dev/null"], { stdio: ["pipe", "pipe", "inherit"] });
  let screen = "";
  child.stdout.on("data", (text) => {
    screen += text;
  });
  while (!screen.includes("[1 overview]")) await once(child.stdout, "data");
  const ended = once(child, "close") as Promise<[number]>;
  return { child, ended, process: Number(readFileSync(id, "utf8")), read: () => screen };
}

describe.skipIf(!hasScript)("cria watch in a real terminal", () => {
  it("restores it on q, and the exit code is 0", async () => {
    const { child, ended, read } = await watch();
    child.stdin.write("q");
    expect((await ended)[0]).toBe(0);
    expect(read()).toContain("\x1b[?1049h");
    expect(read().trimEnd().endsWith(LEAVE)).toBe(true);
  });

  it.each([
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const)(
    "restores it on %s, and the exit code is %i",
    async (signal, code) => {
      const { ended, process: id, read } = await watch();
      process.kill(id, signal);
      expect((await ended)[0]).toBe(code);
      expect(read().trimEnd().endsWith(LEAVE)).toBe(true);
    },
    60_000,
  );
});
