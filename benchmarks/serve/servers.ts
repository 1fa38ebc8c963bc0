/** The two servers, as separate processes with the same model, context, conversations at once and threads. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { getRuntimeInfo } from "@cria/engine";
import { getLlamaServer } from "../peers/llama-server.js";

export interface ServerOptions {
  path: string;
  /** Tokens of one conversation at most. */
  contextSize: number;
  /** Conversations at once. */
  parallel: number;
  threads: number;
  log(text: string): void;
}

export interface Server {
  name: "ours" | "llama-server";
  url: string;
  /** Its last output, for errors. */
  lastWords(): string;
  close(): Promise<void>;
}

const START_MS = 120_000;

/** `cria serve` in this setting. */
export function startOurs({ path, contextSize, parallel, threads }: ServerOptions): Promise<Server> {
  return startCria(path, ["--ctx", contextSize, "--parallel", parallel, "--threads", threads]);
}

/** `cria serve` with its defaults and the given options, on this process's sources. */
export async function startCria(path: string, given: readonly (string | number)[] = []): Promise<Server> {
  const cli = join(dirname(createRequire(import.meta.url).resolve("cria")), "cli.ts");
  const port = await findPort();
  const args = ["serve", "--model", path, "--port", port, ...given];
  const child = spawn(process.execPath, [...process.execArgv, cli, ...args].map(String), {
    stdio: ["ignore", "ignore", "pipe"],
  });
  return waitFor("ours", child, port);
}

/**
 * llama-server with its defaults: it keeps a slot for each conversation, and finds the one that knows a prompt best.
 */
export async function startPeer({ path, contextSize, parallel, threads, log }: ServerOptions): Promise<Server> {
  const program = await getLlamaServer(log);
  const port = await findPort();
  const args = ["-m", path, "--host", "127.0.0.1", "--port", port, "-c", contextSize * parallel, "-np", parallel];
  args.push("-t", threads, "-tb", threads, "-ngl", 0, "--jinja", "--no-webui");
  // It looks for the backends' libraries in the folder that it runs in.
  const child = spawn(program, args.map(String), {
    cwd: getRuntimeInfo().librariesFolder,
    stdio: ["ignore", "ignore", "pipe"],
  });
  return waitFor("llama-server", child, port);
}

async function waitFor(name: Server["name"], child: ChildProcess, port: number): Promise<Server> {
  let said = "";
  child.stderr!.setEncoding("utf8").on("data", (text: string) => {
    said = (said + text).slice(-4000);
  });
  const ended = once(child, "exit");
  const url = `http://127.0.0.1:${port}`;
  const close = async () => {
    child.kill("SIGKILL");
    await ended;
  };
  for (const started = performance.now(); performance.now() - started < START_MS; await sleep(100)) {
    if (child.exitCode !== null || child.signalCode !== null) break;
    const isReady = await fetch(`${url}/health`).then(
      ({ ok }) => ok,
      () => false,
    );
    if (isReady) return { name, url, close, lastWords: () => said };
  }
  await close();
  throw new Error(`${name} did not start:\n${said}`);
}

async function findPort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}
