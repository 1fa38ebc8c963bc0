import type { McpServerConfig } from "./mcp-server-config.js";

/** Lines and characters of a server's stderr that errors show. */
const lastLines = 10;
const lastCharacters = 1000;
/** Characters of an HTTP answer's body that errors show. */
const bodyHead = 300;

/** A server's command or address, for errors, without values of secrets. */
export function describeServer(server: McpServerConfig): string {
  if ("url" in server) return hideUserInfo(server.url);
  let isSecret = false;
  const words = [server.command, ...(server.args ?? [])].map((word) => {
    const shown = isSecret ? "***" : word.replace(/^(-.*(?:key|token|secret|password)[^=]*=).*/i, "$1***");
    isSecret = /^-.*(?:key|token|secret|password)[^=]*$/i.test(word);
    return /^[\w@%+=:,./*-]+$/.test(shown) ? shown : JSON.stringify(shown);
  });
  return words.join(" ");
}

/** The last stderr output and the exit of a stdio server. */
export class LastWords {
  private text = "";
  private ended: { code: number | null; signal: string | null } | null = null;

  hear(chunk: Buffer | string): void {
    this.text = (this.text + chunk.toString()).slice(-4 * lastCharacters);
  }

  end(code: number | null, signal: string | null): void {
    this.ended = { code, signal };
  }

  get hasEnded(): boolean {
    return this.ended !== null;
  }

  /** Its exit and its last output; empty when it wrote nothing and did not end. */
  describe(): string[] {
    const parts: string[] = [];
    if (this.ended) {
      const { code, signal } = this.ended;
      parts.push(signal === null ? `it ended with exit code ${code}` : `it was ended by ${signal}`);
    }
    const lines = this.text.trim().slice(-lastCharacters).split(/\r?\n/).slice(-lastLines);
    if (lines.join("") !== "") parts.push(`its last output:\n    ${lines.join("\n    ")}`);
    return parts;
  }
}

/** An error of the SDK or of fetch, with the status and the head of the body for errors over HTTP. */
export function describeCause(cause: unknown, server: McpServerConfig): string {
  const text = describeError(cause);
  // Some errors quote the URL.
  return "url" in server ? text.replaceAll(server.url, hideUserInfo(server.url)) : text;
}

function describeError(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  const { code, cause: inner } = cause as { code?: unknown; cause?: unknown };
  const message = cause.message.replace(/^Streamable HTTP error: (Error POSTing to endpoint: )?/, "");
  const head = message.length > bodyHead ? `${message.slice(0, bodyHead)}...` : message;
  if (cause.message.startsWith("Streamable HTTP error") && typeof code === "number" && code > 0)
    return `HTTP status ${code}${head === "" ? "" : `: ${head}`}`;
  // fetch gives the reason only in `cause`.
  return inner instanceof Error ? `${head} (${inner.message || (inner as { code?: string }).code})` : head;
}

function hideUserInfo(url: string): string {
  return url
    .replace(/\/\/[^/@]*@/, "//***@")
    .replace(/([?&][^=&]*(?:key|token|secret|password)[^=&]*=)[^&]*/gi, "$1***");
}
