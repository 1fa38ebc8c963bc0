import { takeTurn } from "@cria/rollout/internal";
import type { HttpBindings } from "@hono/node-server";
import { RequestError } from "../request-error.js";
import type { ServeEnv } from "./serve-env.js";

/** Bytes of a body that takes milliseconds to parse: other requests get a turn after such a one. */
const LONG_BODY = 65_536;

/** Deepest nesting of a body, so that recursive readers do not run out of stack. */
const MOST_DEPTH = 128;

/**
 * A request's body as JSON. Its bytes are counted while it arrives, so that no more than the limit is ever held.
 * @param most bytes.
 * @throws RequestError 413, 415 or 400.
 */
export async function receiveJson(
  { req, env }: { req: { raw: Request }; env: ServeEnv["Bindings"] },
  most: number,
): Promise<unknown> {
  const request = req.raw;
  const encoding = request.headers.get("content-encoding");
  if (encoding !== null && encoding !== "identity")
    throw new RequestError(415, "is compressed", {
      code: "serve/bad-encoding",
      subject: "body",
      expected: "a body without Content-Encoding",
      received: encoding.slice(0, 40),
    });
  const length = Number(request.headers.get("content-length") ?? 0);
  if (length > most) throw makeTooLong(most, `${length} bytes`);
  const bytes = await (env?.incoming ? receiveIncoming(env.incoming, most) : receive(request, most));
  // Many bodies may arrive at once; each is read in a separate iteration of the event loop.
  await takeTurn();
  const text = decode(bytes);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw makeBad("JSON", bytes.length === 0 ? "nothing" : (error as Error).message.slice(0, 200));
  }
  checkDepth(value);
  if (bytes.length > LONG_BODY) await takeTurn();
  return value;
}

/** Reads straight from the connection: a web stream would cost a millisecond for each body. */
function receiveIncoming(incoming: HttpBindings["incoming"], most: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const stop = () => {
      incoming.off("data", onData).off("end", onEnd).off("error", onLost).off("close", onLost);
    };
    const onData = (chunk: Buffer) => {
      length += chunk.length;
      chunks.push(chunk);
      if (length <= most) return;
      stop();
      incoming.pause();
      reject(makeTooLong(most, `more than ${most} bytes`));
    };
    const onEnd = () => {
      stop();
      resolve(Buffer.concat(chunks, length));
    };
    const onLost = () => {
      stop();
      reject(makeBad("a whole body", "a connection that ended in it"));
    };
    incoming.on("data", onData).on("end", onEnd).on("error", onLost).on("close", onLost);
    if (incoming.destroyed) onLost();
  });
}

/** Reads a request that came without a server. */
async function receive(request: Request, most: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  const reader = request.body?.getReader();
  while (reader) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.byteLength;
    if (length > most) {
      await reader.cancel().catch(() => undefined);
      throw makeTooLong(most, `more than ${most} bytes`);
    }
    chunks.push(value);
  }
  return Buffer.concat(chunks, length);
}

function decode(bytes: Buffer): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw makeBad("text in UTF-8", "other bytes");
  }
}

/** Checks without recursion, since the depth is not known yet. */
function checkDepth(value: unknown): void {
  let level: object[] = typeof value === "object" && value !== null ? [value] : [];
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > MOST_DEPTH) throw makeBad(`at most ${MOST_DEPTH} levels of lists and mappings`, "more");
    level = level.flatMap((each) =>
      Object.values(each).filter((entry) => typeof entry === "object" && entry !== null),
    ) as object[];
  }
}

function makeTooLong(most: number, received: string): RequestError {
  return new RequestError(413, "is too long", {
    code: "serve/body-too-long",
    subject: "body",
    expected: `at most ${most} bytes`,
    received,
    remedy: "send less, or start the server with a larger --max-body",
  });
}

function makeBad(expected: string, received: string): RequestError {
  return new RequestError(400, "cannot be read", { code: "serve/bad-body", subject: "body", expected, received });
}
