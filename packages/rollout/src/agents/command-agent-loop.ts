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
 * Loop of an agent that is a program in any language. Each episode starts the program in a process group of its own.
 * The program calls the policy over HTTP, at the endpoint that the usual clients read from `OPENAI_BASE_URL`,
 * `OPENAI_API_KEY`, `ANTHROPIC_BASE_URL` and `ANTHROPIC_API_KEY`; `CRIA_MODEL` names the model. It gets the row as
 * JSON on standard input and in the file `CRIA_ROW_FILE`. Its reward comes from `POST $CRIA_SESSION_URL/reward`,
 * else from a last output line `{"reward": 0.5}` or `{"rewards": {"x": 1, "o": -1}}`, else from the task's reward. An exit status other than 0 fails the
 * episode.
 * @param cwd working directory of the program.
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
      // Anthropic clients append /v1 themselves.
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

/** Adds 127.0.0.1 to `no_proxy`: the endpoint is on this machine, and a proxy would not reach it. */
function exemptFromProxies({ no_proxy, NO_PROXY }: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const hosts = [no_proxy || NO_PROXY, "127.0.0.1"].filter(Boolean).join(",");
  return { no_proxy: hosts, NO_PROXY: hosts };
}

/** The row under the column names that dataset files use. */
function describeRow({ index, uid, dataSource, prompt, groundTruth, extraInfo }: DatasetRow): Record<string, unknown> {
  const messages = prompt.map((message) => ({ ...message, content: describeContent(message.content) }));
  return { index, uid, data_source: dataSource, prompt: messages, ground_truth: groundTruth, extra_info: extraInfo };
}

/** Encodes images as OpenAI's API does, so that the program can pass the row's content to the endpoint unchanged. */
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

/** Reads the reward from the last output line; other keys of its JSON become extras. */
function readReward(stdout: string): AgentResult {
  const last = stdout.trimEnd().split("\n").at(-1) ?? "";
  try {
    const { reward, ...extra } = JSON.parse(last) as Record<string, unknown>;
    if (typeof reward === "number") return { score: reward, ...extra };
    if ("rewards" in extra) return extra as AgentResult;
  } catch {
    // Not JSON: ordinary output.
  }
  return undefined;
}
