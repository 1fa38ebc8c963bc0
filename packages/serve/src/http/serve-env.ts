import type { HttpBindings } from "@hono/node-server";
import type { RequestTrace } from "./request-trace.js";

/** Variables of the handlers' context. */
export interface ServeEnv {
  /** undefined for requests without a server, in tests. */
  Bindings?: Partial<HttpBindings>;
  Variables: {
    /** The session of the request; null: none. */
    session: string | null;
    /** The span of the request; absent: it is not traced. */
    trace?: RequestTrace;
  };
}
