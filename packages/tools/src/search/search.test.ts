import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createTools } from "../registry.js";
import { findArgumentError } from "../validate-arguments.js";
import { HttpRetriever } from "./http-retriever.js";
import { LocalRetriever } from "./local-retriever.js";
import { splitText } from "./split-text.js";

fc.configureGlobal({ seed: Number(process.env.CRIA_SEED ?? 1) });

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "cria-search-"));
  await mkdir(join(folder, "animals"));
  await writeFile(
    join(folder, "animals", "llama.md"),
    "# The llama\n\nA cria is a young llama. Llamas hum to their cria.",
  );
  await writeFile(join(folder, "animals", "cat.txt"), `A kitten is a young cat.\n\n${"Cats sleep. ".repeat(200)}`);
  await writeFile(
    join(folder, "corpus.jsonl"),
    `${JSON.stringify({ contents: '"Bonn"\nBonn lies on the Rhine.' })}\nbroken\n${JSON.stringify({ title: "Köln", text: "Köln has a cathedral." })}\n`,
  );
  await writeFile(join(folder, "picture.bin"), "llama");
});
afterAll(() => rm(folder, { recursive: true }));

describe("search in a folder", () => {
  it("ranks passages with BM25, titles and JSONL corpora included", async () => {
    const retriever = new LocalRetriever(folder);
    const [young, rhine, none] = await retriever.search(["young llama", "Rhine", "xylophone"], 3);
    expect(young![0]).toMatchObject({ title: "The llama", text: expect.stringContaining("A cria is a young llama") });
    expect(young![1]!.title).toBe("cat");
    expect(rhine).toEqual([{ title: "Bonn", text: "Bonn lies on the Rhine.", score: expect.any(Number) }]);
    expect(none).toEqual([]);
    expect((await retriever.search(["cats sleep"], 2))[0]).toHaveLength(2);
  });

  it("is a tool whose answer has the form of Search-R1", async () => {
    const entry = { class_name: "@cria/tools#SearchTool", config: { folder: ".", topk: 1 } };
    const tool = (await createTools([entry], folder)).get("search")!;
    expect(findArgumentError(tool.schema, { query_list: ["a"] })).toBeNull();
    expect(findArgumentError(tool.schema, { query_list: "a" })).toMatch(/query_list: expected array/);
    const { response, metrics } = await tool.execute("i", { query_list: ["Köln", "nothing-like-it"] });
    expect(response.text).toBe("Doc 1 (Title: Köln)\nKöln has a cathedral.\n---\nNo results.");
    expect(metrics).toEqual({ search_queries: 2, search_results: 1 });
    expect((await tool.execute("i", { query_list: ["young"] }, { topk: 2 })).metrics.search_results).toBe(2);
  });

  it("an empty or missing folder, or no source at all, is an error that says so", async () => {
    await expect(new LocalRetriever(join(folder, "none")).search(["a"], 1)).rejects.toMatchObject({
      code: "tool/bad-config",
      subject: `folder ${join(folder, "none")}`,
    });
    await expect(new LocalRetriever(folder, { extensions: [".pdf"] }).search(["a"], 1)).rejects.toMatchObject({
      code: "tool/bad-config",
      expected: expect.stringContaining(".pdf"),
    });
    const entry = { class_name: "@cria/tools#SearchTool", config: {} };
    await expect(createTools([entry], folder)).rejects.toMatchObject({
      code: "tool/bad-config",
      subject: "config of the search tool",
    });
  });

  it("splits texts into pieces that fit, and loses nothing but space", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom("a", "b", " ", "\n", ". "), maxLength: 300 }), (text) => {
        const pieces = splitText(text, 40);
        for (const piece of pieces) expect(piece.length).toBeLessThanOrEqual(41);
        expect(pieces.join("").replace(/\s/g, "")).toBe(text.replace(/\s/g, ""));
      }),
    );
  });
});

describe("search over HTTP", () => {
  let server: Server;
  const serve = async (listener: RequestListener) => {
    server = createServer(listener).listen(0);
    await new Promise((done) => server.once("listening", done));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/retrieve`;
  };
  afterEach(() => server.closeAllConnections());
  const answer = { result: [[{ document: { contents: '"Bonn"\nOn the Rhine.' }, score: 0.5 }], []] };

  it("posts Search-R1's request and reads its answer, under the field's class name", async () => {
    let request: unknown;
    const url = await serve(async (incoming, response) => {
      let body = "";
      for await (const chunk of incoming) body += chunk;
      request = [incoming.method, incoming.headers["content-type"], JSON.parse(body)];
      response.end(JSON.stringify(answer));
    });
    const entry = { class_name: "verl.tools.search_tool.SearchTool", config: { retrieval_service_url: url, topk: 2 } };
    const tool = (await createTools([entry], ".")).get("search")!;
    const { response } = await tool.execute("i", { query_list: ["a", "b"] });
    expect(request).toEqual(["POST", "application/json", { queries: ["a", "b"], topk: 2, return_scores: true }]);
    expect(response.text).toBe("Doc 1 (Title: Bonn)\nOn the Rhine.\n---\nNo results.");
  });

  it("tries again after server errors, not after the client's own", async () => {
    let calls = 0;
    const status = [503, 500, 200];
    const url = await serve((_, response) => {
      response.statusCode = status[calls++] ?? 404;
      response.end(JSON.stringify(answer));
    });
    const retriever = new HttpRetriever(url, { retryDelayS: 0.01 });
    expect((await retriever.search(["a", "b"], 1))[0]![0]!.score).toBe(0.5);
    expect(calls).toBe(3);
    await expect(retriever.search(["a"], 1)).rejects.toMatchObject({
      code: "tool/retriever",
      received: expect.stringContaining("HTTP 404"),
    });
    expect(calls).toBe(4);
  });

  it("a server that is gone, hangs or answers nonsense is an error with the reason", async () => {
    const gone = new HttpRetriever("http://127.0.0.1:1/", { retries: 1, retryDelayS: 0.01 });
    await expect(gone.search(["a"], 1)).rejects.toMatchObject({
      code: "tool/retriever",
      received: expect.stringContaining("fetch failed"),
    });
    const hanging = await serve(() => {});
    const quick = new HttpRetriever(hanging, { timeoutS: 0.05, retries: 0 });
    await expect(quick.search(["a"], 1)).rejects.toMatchObject({
      code: "tool/retriever",
      received: "The operation was aborted due to timeout",
    });
    const aborted = new HttpRetriever(hanging).search(["a"], 1, AbortSignal.timeout(50));
    await expect(aborted).rejects.toMatchObject({
      code: "tool/retriever",
      received: expect.stringContaining("aborted"),
    });
    server.closeAllConnections();
    const nonsense = await serve((_, response) => response.end('{"result": [1]}'));
    await expect(new HttpRetriever(nonsense).search(["a"], 1)).rejects.toMatchObject({
      code: "tool/retriever",
      subject: "answer of the retriever",
    });
  });

  it("keeps to its number of requests at once", async () => {
    let now = 0;
    let most = 0;
    const url = await serve(async (_, response) => {
      most = Math.max(most, ++now);
      await new Promise((done) => setTimeout(done, 5));
      now--;
      response.end('{"result": [[]]}');
    });
    const retriever = new HttpRetriever(url, { maxConcurrent: 3 });
    await Promise.all(Array.from({ length: 20 }, () => retriever.search(["a"], 1)));
    expect(most).toBe(3);
  });
});
