import { existsSync } from "node:fs";
import { ConfigError } from "@cria/core";
import { isLoopback } from "@cria/serve/internal";
import { defineCommand } from "citty";
import { colors as pc } from "../terminal/colors.js";
import { makePrintableLine } from "../terminal/printable-text.js";
import { Progress } from "../terminal/progress.js";
import { openBrowser } from "../view/open-browser.js";
import { listenViewer, PORT } from "../view/server/listen.js";
import { writeStatic } from "../view/write-static.js";
import { readNumber } from "./read-options.js";
import { commonArgs, runCommand } from "./run-command.js";

const args = {
  folders: {
    type: "positional",
    description: "Run folders, folders of runs, or files of conversations (default: runs)",
    required: false,
  },
  host: {
    type: "string",
    description:
      "Address to listen on (default: 127.0.0.1); beyond this machine the address has a token, which the server requires",
  },
  port: { type: "string", description: `0: any free port (default: ${PORT}, or a free one if that is taken)` },
  open: { type: "boolean", default: true, description: "Open the browser (--no-open: only print the address)" },
  static: { type: "string", description: "Write everything as files into this folder instead of serving it" },
  ...commonArgs,
} as const;

/** Text below the options in the help. */
export const viewNotes = `EXAMPLES

  cria view                                  all runs in runs/
  cria view runs/p/e eval.jsonl              a run, and conversations of cria eval
  cria view --host 0.0.0.0                   for other machines: the address has a token
  ssh -L ${PORT}:127.0.0.1:${PORT} machine       and cria view --no-open there: for a machine without a browser
  cria view runs/p/e --static site/          a folder for any web server

It writes only an index next to each file of conversations, and sends no requests to other servers.`;

export const viewCommand = defineCommand({
  meta: { name: "view", description: "Show runs in the browser: curves, groups, conversations, tokens, live" },
  args,
  run: ({ args: given }) =>
    runCommand(given, async (signal) => {
      const folders = findFolders(given._.map(String));
      const isJson = given.json === true;
      if (given.static !== undefined) {
        const progress = new Progress({ label: "write   ", total: 1, silent: isJson });
        const onProgress = (done: number, total: number) => progress.update(done, "", total);
        const files = await writeStatic({ folders, out: given.static, signal, onProgress });
        progress.finish();
        if (isJson) console.log(JSON.stringify({ folder: given.static, files }));
        else console.log(`${given.static}: ${files} files of data; serve it with any web server`);
        return;
      }
      const host = given.host ?? "127.0.0.1";
      const port = readNumber("port", given.port, { whole: true, least: 0, most: 65_535 }) ?? null;
      const viewer = await listenViewer({ folders, host, port });
      try {
        if (isJson) console.log(JSON.stringify({ url: viewer.url, folders }));
        else introduce(viewer.url, folders);
        if (given.open && !isJson && process.stdout.isTTY && isLoopback(host)) openBrowser(viewer.url);
        await new Promise<void>((resolve) => {
          if (signal.aborted) resolve();
          signal.addEventListener("abort", () => resolve(), { once: true });
        });
      } finally {
        await viewer.close();
      }
    }),
});

/** @throws ConfigError for a missing folder; only runs/ may be created later. */
function findFolders(named: readonly string[]): string[] {
  const missing = named.find((folder) => !existsSync(folder));
  if (missing === undefined) return named.length > 0 ? [...named] : ["runs"];
  throw new ConfigError("does not exist", {
    code: "config/bad-argument",
    subject: missing,
    expected: "run folders, folders of runs, or files of conversations (JSONL)",
    received: "no such file or folder",
    remedy: "check the path; cria runs lists all runs",
  });
}

function introduce(url: string, folders: readonly string[]): void {
  console.log(`${pc.bold("cria view")} ${makePrintableLine(folders.join(", "))} at ${pc.bold(url)}`);
  console.log(pc.dim("Ctrl-C ends it"));
}
