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
