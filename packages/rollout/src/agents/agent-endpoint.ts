import { ConfigError } from "@cria/core";
import type { ChatSession } from "../chat/chat-session.js";

/** Where a program reaches the session of its episode. */
export interface SessionAddress {
  /** Of the server, without a path; the session's routes lie under it for who has its key. */
  url: string;
  /** Opens this session alone. */
  apiKey: string;
  /** Takes the session away from the endpoint. */
  close(): void;
}

/** An HTTP endpoint that makes the sessions of episodes reachable for programs outside this process. */
export interface AgentEndpoint {
  add(session: ChatSession): Promise<SessionAddress>;
}

let endpoint: AgentEndpoint | null = null;

/** Says how programs outside this process reach a session; `cria` does it with @cria/serve. */
export function registerAgentEndpoint(given: AgentEndpoint): void {
  endpoint = given;
}

/** @throws ConfigError where nobody has said how. */
export function findAgentEndpoint(): AgentEndpoint {
  if (endpoint) return endpoint;
  throw new ConfigError("have no endpoint to call", {
    code: "config/no-agent-endpoint",
    subject: "agents with a command",
    expected: "a program that imports cria, or registerAgentEndpoint(...)",
    remedy: "run it with the command cria, or use an agent that is a function",
  });
}
