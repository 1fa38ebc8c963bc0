import { randomBytes } from "node:crypto";
import { DataError } from "@cria/core";
import type { AgentEndpoint, ChatSession, SessionAddress } from "@cria/rollout";
import { type Listening, listen } from "../http/listen.js";
import { describeGraph } from "./describe-graph.js";
import { serveEngine } from "./serve-engine.js";
import type { ServedModel } from "./served-model.js";

const unlimited = Number.MAX_SAFE_INTEGER;

/** The sessions of one engine's episodes, and their common listener. */
interface Group {
  sessions: Map<string, ChatSession>;
  /** Session ids by key. */
  keys: Map<string, string>;
  listening: Promise<Listening>;
}

/**
 * Makes the sessions of episodes reachable for programs outside this process: on loopback, with a separate key for
 * each. A listener serves the episodes of one engine, and closes with the last of them.
 */
export function openAgentEndpoint(): AgentEndpoint {
  const groups = new Map<object, Group>();

  const openGroup = (first: ChatSession): Group => {
    const sessions = new Map<string, ChatSession>();
    const keys = new Map<string, string>();
    const listening = listen({
      model: serveEpisodes(first, sessions),
      implicitSessions: false,
      authenticate: (key) => {
        const session = key === null ? undefined : keys.get(key);
        return session === undefined ? null : { session };
      },
      origins: { hosts: ["127.0.0.1"], cors: [] },
      // The episode's limits bound its calls.
      limits: { running: unlimited, waiting: 1, sessions: unlimited, images: unlimited },
    });
    return { sessions, keys, listening };
  };

  /** Removes a session from its group, and aborts its running calls. */
  const leave = async (engine: object, group: Group, session: ChatSession, key: string) => {
    group.sessions.delete(session.id);
    group.keys.delete(key);
    const isLast = group.sessions.size === 0;
    if (isLast && groups.get(engine) === group) groups.delete(engine);
    const listening = await group.listening;
    listening.endpoint.sessions.forget(session.id);
    if (isLast) await listening.close();
  };

  return {
    async add(session: ChatSession): Promise<SessionAddress> {
      const { engine } = session.model;
      const group = groups.get(engine) ?? openGroup(session);
      groups.set(engine, group);
      const apiKey = randomBytes(24).toString("base64url");
      group.sessions.set(session.id, session);
      group.keys.set(apiKey, session.id);
      const close = () => void leave(engine, group, session, apiKey).catch(() => undefined);
      try {
        const { url, endpoint } = await group.listening;
        // The session exists before its first call, since a reward may come without one.
        endpoint.sessions.create({ id: session.id });
        return { url, apiKey, close };
      } catch (cause) {
        close();
        throw cause;
      }
    },
  };
}

/** A model whose sessions are those of episodes; a request without one of these sessions is refused. */
function serveEpisodes(first: ChatSession, sessions: ReadonlyMap<string, ChatSession>): ServedModel {
  const { name, model } = first;
  const served = serveEngine({ ...model, name, fingerprint: name, format: "hermes" });
  return {
    ...served,
    openSession: ({ id }) => {
      const session = sessions.get(id);
      if (!session) throw refuse("session", "the session of a running episode", id);
      return {
        id,
        name,
        complete: (request, options) => session.complete(request, options),
        reward: (value, node) => session.reward(value, node),
        describe: () => describeGraph(session),
        // The episode ends its session.
        dispose: () => undefined,
      };
    },
    complete: async () => {
      throw refuse(
        "route",
        "chat completions, responses or messages: text completions are not recorded",
        "/v1/completions",
      );
    },
  };
}

function refuse(subject: string, expected: string, received: string): DataError {
  return new DataError("is not part of an episode", { code: "chat/bad-request", subject, expected, received });
}
