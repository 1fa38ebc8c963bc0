import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";

/** What clients do in one round, and what they saw. All use chat completions, streamed. */
export interface Load {
  clients: number;
  /** Conversations that each client holds, one after the other. */
  conversations: number;
  /** What is said first, of each conversation, and each question after it. Numbers make texts that no round has seen before. */
  system: string;
  ask(conversation: number, turn: number): string;
  /** Questions of a conversation; later ones come with the whole history. */
  turns: number;
  maxTokens: number;
}

export interface Seen {
  seconds: number;
  requests: number;
  tokens: number;
  /** Milliseconds to the first piece of text, of each request. */
  first: number[];
}

interface Message {
  role: "system" | "user" | "assistant";
  content: string;
}

/** @param round makes its texts other than those of other rounds. */
export async function runLoad(url: string, load: Load, round: number): Promise<Seen> {
  const seen: Seen = { seconds: 0, requests: 0, tokens: 0, first: [] };
  const started = performance.now();
  const runClient = async (client: number) => {
    for (let i = 0; i < load.conversations; i++) {
      const number = (round * load.clients + client) * load.conversations + i;
      const messages: Message[] = [{ role: "system", content: load.system }];
      for (let turn = 0; turn < load.turns; turn++) {
        messages.push({ role: "user", content: load.ask(number, turn) });
        const content = await ask(url, messages, load.maxTokens, number * load.turns + turn, seen);
        messages.push({ role: "assistant", content });
      }
    }
  };
  await Promise.all(Array.from({ length: load.clients }, (_, client) => runClient(client)));
  seen.seconds = (performance.now() - started) / 1000;
  return seen;
}

interface Chunk {
  choices: { delta: { content?: string | null } }[];
  usage?: { completion_tokens: number } | null;
  error?: { message: string };
}

async function ask(
  url: string,
  messages: readonly Message[],
  maxTokens: number,
  seed: number,
  seen: Seen,
): Promise<string> {
  const body = {
    model: "any",
    messages,
    max_tokens: maxTokens,
    temperature: 1,
    top_k: 0,
    top_p: 1,
    min_p: 0,
    seed,
    stream: true,
    stream_options: { include_usage: true },
  };
  const started = performance.now();
  const response = await post(`${url}/v1/chat/completions`, JSON.stringify(body));
  let content = "";
  let rest = "";
  let first: number | null = null;
  let tokens: number | null = null;
  for await (const text of response) {
    const lines = (rest + text).split("\n");
    rest = lines.pop()!;
    for (const line of lines) {
      if (!line.startsWith("data: ") || line === "data: [DONE]") continue;
      const { choices, usage, error } = JSON.parse(line.slice(6)) as Chunk;
      if (error) throw new Error(`${url}: ${error.message}`);
      const piece = choices[0]?.delta.content ?? "";
      if (piece !== "") first ??= performance.now() - started;
      content += piece;
      tokens = usage?.completion_tokens ?? tokens;
    }
  }
  if (tokens === null) throw new Error(`${url} told no usage`);
  seen.requests++;
  seen.tokens += tokens;
  seen.first.push(first ?? performance.now() - started);
  return content;
}

/** Each request has a connection of its own: llama-server closes its connections after a stream. */
async function post(url: string, body: string): Promise<IncomingMessage> {
  const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
  const sent = request(url, { method: "POST", agent: false, headers }).end(body);
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  response.setEncoding("utf8");
  if (response.statusCode === 200) return response;
  throw new Error(`${url} answered ${response.statusCode}: ${(await response.toArray()).join("")}`);
}
