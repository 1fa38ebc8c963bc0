import type { HttpBindings } from "@hono/node-server";

/** What handlers find in their context. */
export interface ServeEnv {
  /** undefined where requests come without a server, in tests. */
  Bindings?: Partial<HttpBindings>;
  Variables: {
    /** The session of the request; null: none. */
    session: string | null;
  };
}
