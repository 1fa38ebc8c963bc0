import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ChatMessage, ConfigError } from "@cria/core";
import { isLoaded } from "@cria/core/internal";
import type { ChatSession } from "../chat/chat-session.js";
import type { DatasetRow } from "../data/dataset-row.js";
import type { AgentEndpoint } from "../loops/agent-endpoint.js";
import type { AgentLoopEntry } from "../loops/agent-loops.js";
import { toPlainData } from "../plain-data.js";
import { runAgentEpisode } from "./agent-episode.js";
import type { AgentResult } from "./agent-function.js";
import { runProgram } from "./run-program.js";

/**
 * The loop of an agent that is a program, in any language: started once an episode, in a process group of its own. It calls the
 * policy over HTTP, where the usual clients look for their endpoint: `OPENAI_BASE_URL`, `OPENAI_API_KEY`, `ANTHROPIC_BASE_URL`,
 * `ANTHROPIC_API_KEY`, and `CRIA_MODEL`. The row stands as JSON on its standard input and in the file `CRIA_ROW_FILE`. It is rewarded
 * by `POST $CRIA_SESSION_URL/reward`, else by a last line `{"reward": 0.5}` of its output, else by the task's reward. An exit status
 * other than 0 is a failed episode.
 * @param cwd folder that it starts in.
 */
export function makeCommandAgent(command: readonly string[], cwd: string): AgentLoopEntry {
  return {
    factory: (context) => ({
      run: (sampling, row) =>
        runAgentEpisode(context, sampling, row, async (session, signal) => {
          const endpoint = await (context.agent.loadEndpoint ?? refuseEndpoint)();
          return runEpisode({ command, cwd, endpoint }, session, row, signal);
        }),
    }),
    traits: { prompt: false, tools: false, interactions: false, scores: true },
    recorded: "calls",
  };
}

function refuseEndpoint(): never {
  throw new ConfigError("have no endpoint to call", {
    code: "config/no-agent-endpoint",
    subject: "agents with a command",
    expected: "rollouts with agent.loadEndpoint, as train and rollOut have it",
    remedy: "use an agent that is a function",
  });
}

interface CommandAgent {
  command: readonly string[];
  cwd: string;
  endpoint: AgentEndpoint;
}

async function runEpisode(
  { command, cwd, endpoint }: CommandAgent,
  session: ChatSession,
  row: DatasetRow,
  signal: AbortSignal,
): Promise<AgentResult> {
  const input = JSON.stringify(toPlainData(row.extraInfo.row ?? describeRow(row)));
  const address = await endpoint.add(session);
  const folder = await mkdtemp(join(tmpdir(), "cria-agent-"));
  try {
    const rowFile = join(folder, "row.json");
    await writeFile(rowFile, input);
    const { url, apiKey } = address;
    const env = {
      ...process.env,
      OPENAI_BASE_URL: `${url}/v1`,
      OPENAI_API_KEY: apiKey,
      // Its clients add /v1 themselves.
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_API_KEY: apiKey,
      CRIA_MODEL: session.name,
      CRIA_SESSION_URL: `${url}/sessions/${session.id}`,
      CRIA_ROW_FILE: rowFile,
      ...exemptFromProxies(process.env),
    };
    const { status, stdout, stderr } = await runProgram({ command, cwd, env, input, signal });
    if (status !== 0) throw new Error(describeExit(command, status, stderr));
    return readReward(stdout);
  } finally {
    address.close();
    await rm(folder, { recursive: true, force: true });
  }
}

/** The endpoint is on this machine, where no proxy finds it. */
function exemptFromProxies({ no_proxy, NO_PROXY }: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const hosts = [no_proxy || NO_PROXY, "127.0.0.1"].filter(Boolean).join(",");
  return { no_proxy: hosts, NO_PROXY: hosts };
}

/** A file's row by the names of its columns. */
function describeRow({ index, uid, dataSource, prompt, groundTruth, extraInfo }: DatasetRow): Record<string, unknown> {
  const messages = prompt.map((message) => ({ ...message, content: describeContent(message.content) }));
  return { index, uid, data_source: dataSource, prompt: messages, ground_truth: groundTruth, extra_info: extraInfo };
}

/** With images as OpenAI's API takes them: the program can say to the endpoint what the row says. */
function describeContent(content: ChatMessage["content"]): unknown {
  if (typeof content === "string") return content;
  return content.map((part) => {
    if (part.type === "text" || !isLoaded(part.image)) return part;
    const { mimeType, bytes } = part.image;
    return {
      type: "image_url",
      image_url: { url: `data:${mimeType};base64,${Buffer.from(bytes).toString("base64")}` },
    };
  });
}

function describeExit(command: readonly string[], status: number | string, stderr: string): string {
  const said = stderr.trim().slice(-2000);
  const how = typeof status === "number" ? `exited with ${status}` : `was ended by ${status}`;
  return `the agent (${command.join(" ")}) ${how}${said === "" ? "" : `:\n${said}`}`;
}

/** The last line of an output, where it says a reward; what else it says are extras. */
function readReward(stdout: string): AgentResult {
  const last = stdout.trimEnd().split("\n").at(-1) ?? "";
  try {
    const { reward, ...extra } = JSON.parse(last) as Record<string, unknown>;
    if (typeof reward === "number") return { score: reward, ...extra };
  } catch {
    // Any other output.
  }
  return undefined;
}
