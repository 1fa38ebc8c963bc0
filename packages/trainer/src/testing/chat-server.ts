import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";

export interface ChatRequest {
  model: string;
  messages: { role: string; content: string }[];
  max_tokens: number;
  temperature: number;
  logprobs?: boolean;
  top_logprobs?: number;
}

/** A text, a whole body, or a status other than 200. */
export type ChatReply = string | { status?: number; body: unknown };

/** A local stand-in for a server with OpenAI's chat completions. */
export interface ChatServer {
  /** Up to and without /chat/completions. */
  url: string;
  requests: { body: ChatRequest; headers: IncomingHttpHeaders; path: string }[];
  close: () => Promise<void>;
}

export async function startChatServer(
  reply: (request: ChatRequest, index: number) => ChatReply | Promise<ChatReply>,
): Promise<ChatServer> {
  const requests: ChatServer["requests"] = [];
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    const body = JSON.parse(text) as ChatRequest;
    requests.push({ body, headers: request.headers, path: request.url! });
    const answer = await reply(body, requests.length - 1);
    const { status = 200, body: sent } =
      typeof answer === "string" ? { body: { choices: [{ message: { content: answer } }] } } : answer;
    response.writeHead(status, { "content-type": "application/json" });
    response.end(typeof sent === "string" ? sent : JSON.stringify(sent));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = () =>
    new Promise<void>((resolve) => {
      server.closeAllConnections();
      server.close(() => resolve());
    });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, requests, close };
}
