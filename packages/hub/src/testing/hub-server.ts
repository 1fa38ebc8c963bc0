import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface ServedRepository {
  type: "model" | "dataset";
  name: string;
  /** Content by path. Serves GGUF and Parquet files as the hub serves large ones. */
  files: Record<string, string | Uint8Array>;
  /** Configs in a dataset's card. */
  configs?: unknown;
  /** Files of revisions other than main, such as refs/convert/parquet. */
  revisions?: Record<string, Record<string, string | Uint8Array>>;
  /** Only requests with this token are answered. */
  token?: string;
}

/** Simulated failures, by path of the file. */
export interface Faults {
  /** Numbers of bytes after which an answer's connection breaks; each entry is used once. */
  cutAfter: number[];
  /** Sends other bytes than those that are listed. */
  damaged: boolean;
  /** HTTP statuses to answer with, each once, before anything else. */
  statuses: number[];
}

/**
 * Answers as a Hugging Face hub does, for its own clients: the API of models and datasets, lists of files in pages,
 * redirects of large files to another host with X-Linked-Size and X-Linked-ETag, the first requests of clients of its
 * other protocol (Xet), ranges, 401 and 404 with X-Error-Code.
 */
export class HubServer {
  readonly faults = new Map<string, Partial<Faults>>();
  /** Method, path and range of every request, in order. */
  readonly requests: string[] = [];
  /** Tokens that arrived at the host of large files: a client must not send them there. */
  readonly leakedTokens: string[] = [];
  private readonly store: Server;
  private readonly server: Server;
  private readonly blobs = new Map<string, { path: string; bytes: Buffer }>();

  private constructor(private readonly repositories: ServedRepository[]) {
    this.server = createServer((request, response) => this.answer(request, response));
    this.store = createServer((request, response) => this.answerStore(request, response));
  }

  static async start(...repositories: ServedRepository[]): Promise<HubServer> {
    const hub = new HubServer(repositories);
    for (const server of [hub.server, hub.store])
      await new Promise<void>((done) => server.listen(0, "127.0.0.1", () => done()));
    return hub;
  }

  /** Value for HF_ENDPOINT. */
  get endpoint(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** Number of requests for a file's content. */
  countDownloads(path: string): number {
    return this.requests.filter(
      (line) => line.includes(path) && line.includes("/resolve/") && !line.endsWith(" bytes=0-0"),
    ).length;
  }

  commitOf(name: string, revision = "main"): string {
    return createHash("sha1").update(`${name}@${revision}`).digest("hex");
  }

  async stop(): Promise<void> {
    for (const server of [this.server, this.store]) {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    }
  }

  private answer(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url!, this.endpoint);
    const path = decodeURIComponent(url.pathname);
    this.requests.push(`${request.method} ${path} ${request.headers.range ?? ""}`.trim());
    const api = /^\/api\/(model|dataset)s\/([^/]+\/[^/]+)\/(revision|tree)\/(.+)$/.exec(path);
    const file = /^\/(datasets\/)?([^/]+\/[^/]+)\/resolve\/([^/]+)\/(.+)$/.exec(path);
    const [type, name] = api ? [api[1], api[2]] : [file?.[1] ? "dataset" : "model", file?.[2]];
    const repository = this.repositories.find((one) => one.type === type && one.name === name);
    // The hub does not reveal which private names exist.
    if (!repository) {
      refuse(response, 401, "RepoNotFound", "Repository not found");
      return;
    }
    if (repository.token && request.headers.authorization !== `Bearer ${repository.token}`) {
      refuse(response, 401, "GatedRepo", "Access to this repository is restricted");
      return;
    }
    const asked = api ? api[4]! : file![3]!;
    const revision = ["main", ...Object.keys(repository.revisions ?? {})].find(
      (known) =>
        asked === known || asked === this.commitOf(repository.name, known) || (asked === "HEAD" && known === "main"),
    );
    if (!revision) {
      refuse(response, 404, "RevisionNotFound", `Invalid rev id: ${asked}`);
      return;
    }
    const files = revision === "main" ? repository.files : repository.revisions![revision]!;
    if (api?.[3] === "revision") this.answerInfo(repository, revision, response);
    else if (api) this.answerTree(files, url, response);
    else this.answerFile(files, file![4]!, revision, repository, request, response);
  }

  private answerInfo({ name, configs }: ServedRepository, revision: string, response: ServerResponse): void {
    sendJson(response, {
      _id: "1",
      id: name,
      private: false,
      gated: false,
      downloads: 0,
      likes: 0,
      lastModified: "2026-01-01T00:00:00.000Z",
      sha: this.commitOf(name, revision),
      cardData: configs === undefined ? {} : { configs },
    });
  }

  /** Two files per page, as in long lists. */
  private answerTree(files: ServedRepository["files"], url: URL, response: ServerResponse): void {
    const start = Number(url.searchParams.get("cursor") ?? 0);
    const all = Object.entries(files).map(([path, content]) => {
      const bytes = Buffer.from(content);
      const pointer = { oid: hashOf(bytes), size: bytes.length, pointerSize: 133 };
      const oid = createHash("sha1").update(`blob ${bytes.length}\0`).update(bytes).digest("hex");
      return { type: "file", path, size: bytes.length, oid, ...(isLarge(path) ? { lfs: pointer } : {}) };
    });
    if (start + 2 < all.length) {
      url.searchParams.set("cursor", String(start + 2));
      response.setHeader("Link", `<${url.href}>; rel="next"`);
    }
    sendJson(response, all.slice(start, start + 2));
  }

  private answerFile(
    files: ServedRepository["files"],
    path: string,
    revision: string,
    { name }: ServedRepository,
    request: IncomingMessage,
    response: ServerResponse,
  ): void {
    if (files[path] === undefined) {
      refuse(response, 404, "EntryNotFound", "Entry not found");
      return;
    }
    const status = this.faults.get(path)?.statuses?.shift();
    if (status) {
      refuse(response, status, "Trouble", "the hub has trouble");
      return;
    }
    const bytes = Buffer.from(files[path]);
    response.setHeader("X-Repo-Commit", this.commitOf(name, revision));
    if (!isLarge(path)) {
      response.setHeader("ETag", `"${hashOf(bytes)}"`);
      this.sendBytes(path, bytes, request, response);
      return;
    }
    const oid = hashOf(bytes);
    this.blobs.set(oid, { path, bytes });
    response.setHeader("X-Linked-Size", String(bytes.length));
    response.setHeader("X-Linked-ETag", `"${oid}"`);
    if (request.headers.accept?.includes("xet-fileinfo")) {
      response.setHeader("X-Xet-Hash", oid);
      const links = ["auth", "reconstruction-info"].map((rel) => `<${this.endpoint}/xet/${oid}>; rel="xet-${rel}"`);
      response.setHeader("Link", links.join(", "));
      response.setHeader("Content-Type", "application/vnd.xet-fileinfo+json");
      response.end("{}");
      return;
    }
    // The name of another host: clients do not send tokens to it.
    response.writeHead(302, {
      Location: `http://localhost:${(this.store.address() as AddressInfo).port}/${oid}?signature=x`,
    });
    response.end();
  }

  private answerStore(request: IncomingMessage, response: ServerResponse): void {
    if (request.headers.authorization) this.leakedTokens.push(request.headers.authorization);
    const blob = this.blobs.get(request.url!.slice(1).split("?")[0]!)!;
    response.setHeader("ETag", `"${hashOf(blob.bytes)}"`);
    this.sendBytes(blob.path, blob.bytes, request, response);
  }

  private sendBytes(path: string, content: Buffer, request: IncomingMessage, response: ServerResponse): void {
    const fault = this.faults.get(path) ?? {};
    const bytes = fault.damaged ? Buffer.from(content).reverse() : content;
    const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "");
    const start = range ? Number(range[1]) : 0;
    const end = range?.[2] ? Math.min(Number(range[2]) + 1, bytes.length) : bytes.length;
    const part = bytes.subarray(start, end);
    response.writeHead(range ? 206 : 200, {
      "Accept-Ranges": "bytes",
      "Content-Length": part.length,
      ...(range ? { "Content-Range": `bytes ${start}-${end - 1}/${bytes.length}` } : {}),
    });
    const cut = part.length > 1 ? fault.cutAfter?.shift() : undefined;
    if (cut === undefined) return void response.end(part);
    response.write(part.subarray(0, cut), () => setTimeout(() => response.destroy(), 20));
  }
}

/** Files that the hub stores outside of Git. */
function isLarge(path: string): boolean {
  return /\.(gguf|parquet)$/.test(path);
}

function hashOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

function sendJson(response: ServerResponse, value: unknown): void {
  response.setHeader("Content-Type", "application/json");
  response.end(JSON.stringify(value));
}

function refuse(response: ServerResponse, status: number, code: string, error: string): void {
  response.statusCode = status;
  response.setHeader("X-Error-Code", code);
  sendJson(response, { error });
}
