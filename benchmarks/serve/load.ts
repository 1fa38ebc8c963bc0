import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";

/** The clients' work in one round, and their observations. All use chat completions, streamed. */
export interface Load {
  clients: number;
  /** Conversations that each client holds, one after the other. */
  conversations: number;
  /**
   * The first message of each conversation, and each question after it. Numbers make texts that no round has seen
   * before.
   */
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
  /** Tokens a second from the first piece of text to the end, of each request: of use where pieces come one by one. */
  decode: number[];
  /** Tokens before the answer that were evaluated, of each request. */
  evaluated: number[];
}

interface Message {
  role: "system" | "user" | "assistant";
  content: string;
}

/** @param round makes its texts other than those of other rounds. */
export async function runLoad(url: string, load: Load, round: number): Promise<Seen> {
  const seen: Seen = { seconds: 0, requests: 0, tokens: 0, first: [], decode: [], evaluated: [] };
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

interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  prompt_tokens_details?: { cached_tokens: number };
}

interface Chunk {
  choices: { delta: { content?: string | null } }[];
  usage?: Usage | null;
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
  let used: Usage | null = null;
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
      used = usage ?? used;
    }
  }
  if (used === null) throw new Error(`${url} told no usage`);
  const ended = performance.now() - started;
  first ??= ended;
  seen.requests++;
  seen.tokens += used.completion_tokens;
  seen.first.push(first);
  seen.decode.push((1000 * (used.completion_tokens - 1)) / (ended - first));
  seen.evaluated.push(used.prompt_tokens - (used.prompt_tokens_details?.cached_tokens ?? 0));
  return content;
}

/** Each request has a separate connection: llama-server closes its connections after a stream. */
async function post(url: string, body: string): Promise<IncomingMessage> {
  const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
  const sent = request(url, { method: "POST", agent: false, headers }).end(body);
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  response.setEncoding("utf8");
  if (response.statusCode === 200) return response;
  throw new Error(`${url} answered ${response.statusCode}: ${(await response.toArray()).join("")}`);
}
