import type { ChatSession } from "../chat/chat-session.js";

/** Address of an episode's session, for programs. */
export interface SessionAddress {
  /** Base address of the server; the API key selects the session. */
  url: string;
  /** Grants access to this session only. */
  apiKey: string;
  /** Removes the session from the endpoint. */
  close(): void;
}

/** An HTTP endpoint through which programs outside this process reach the sessions of episodes. */
export interface AgentEndpoint {
  add(session: ChatSession): Promise<SessionAddress>;
}
