import { request as httpRequest } from "node:http";
import { connect } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { RetryMemory } from "../model/retry-memory.js";
import { makeAnswer } from "../testing/make-answer.js";
import { type OpenFakeOptions, openFake } from "../testing/open-fake.js";
import { authenticateByKey, checkExposure, checkOrigin } from "./access.js";

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function open(options: OpenFakeOptions = {}) {
  const fake = await openFake(options);
  closers.push(() => fake.server.close());
  return fake;
}

const hello = { messages: [{ role: "user", content: "hi" }] };
const until = async (holds: () => boolean) => {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 5));
};

describe("bodies", () => {
  it("that are not requests are refused, in the form of their API", async () => {
    const { post } = await open();
    const deep = `${'{"a":'.repeat(5000)}1${"}".repeat(5000)}`;
    for (const [body, field] of [
      ["", "nothing"],
      ["{", "JSON"],
      ["null", "null"],
      ["[]", "list"],
      ['"text"', "text"],
      [deep, "levels"],
      ["[".repeat(400_000), "JSON"],
    ] as const) {
      for (const path of ["/v1/chat/completions", "/v1/completions", "/v1/responses", "/sessions/s/reward"]) {
        if (path.startsWith("/sessions")) await post("/sessions/s/v1/chat/completions", hello);
        const { status, body: answer } = await post(path, body);
        expect(status, `${path} ${body.slice(0, 20)}`).toBe(400);
        expect(answer.error).toMatchObject({ type: "invalid_request_error" });
        expect(answer.error.message).toContain(field);
      }
      const { status, body: answer } = await post("/v1/messages", body);
      expect([status, answer.type, answer.error.type]).toEqual([400, "error", "invalid_request_error"]);
    }
  });

  it("that are not UTF-8, or compressed, are refused", async () => {
    const { url } = await open();
    const send = (body: Uint8Array, headers: Record<string, string>) =>
      fetch(`${url}/v1/chat/completions`, { method: "POST", body, headers });
    expect((await send(Uint8Array.of(0x22, 0xff, 0x22), {})).status).toBe(400);
    expect((await send(Uint8Array.of(0x1f, 0x8b), { "content-encoding": "gzip" })).status).toBe(415);
  });

  it("that are too long are refused before they are read to their end", async () => {
    const { post, url, engine } = await open({ limits: { bodyBytes: 1000 } });
    const { status, body } = await post("/v1/chat/completions", {
      messages: [{ role: "user", content: "x".repeat(2000) }],
    });
    expect([status, body.error.code]).toEqual([413, "serve/body-too-long"]);
    // In chunks, so that no header gives the length, and without an end.
    const answer = await new Promise<{ status: number; sent: number }>((resolve, reject) => {
      let sent = 0;
      const request = httpRequest(`${url}/v1/chat/completions`, { method: "POST" }, (response) => {
        clearInterval(timer);
        response.resume();
        resolve({ status: response.statusCode!, sent });
        request.destroy();
      });
      request.on("error", reject);
      const timer = setInterval(() => {
        sent += 200;
        request.write("x".repeat(200));
      }, 2);
    });
    expect(answer.status).toBe(413);
    expect(engine.counts.requests).toBe(0);
  });
});

describe("a question to the model", () => {
  it("that does not fit: 400, and the next request is answered", async () => {
    const { post } = await open();
    const long = { messages: [{ role: "user", content: "x".repeat(9000) }] };
    const { status, body } = await post("/v1/chat/completions", long);
    expect([status, body.error.code, body.error.type]).toEqual([
      400,
      "context_length_exceeded",
      "invalid_request_error",
    ]);
    expect((await post("/v1/messages", { ...long, max_tokens: 5 })).body.error.type).toBe("invalid_request_error");
    expect((await post("/v1/chat/completions", hello)).status).toBe(200);
  });

  it("with an order of messages that the template refuses: 400", async () => {
    const { post } = await open({
      engine: {
        chatTemplate:
          "{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('no tools') }}{% endif %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
      },
    });
    const messages = [...hello.messages, { role: "tool", content: "x", tool_call_id: "a" }];
    const { status, body } = await post("/v1/chat/completions", { messages });
    expect([status, body.error.type]).toEqual([400, "invalid_request_error"]);
    const counted = await post("/v1/messages/count_tokens", {
      messages: [{ role: "user", content: [{ type: "tool_result", tool_use_id: "a", content: "x" }] }],
    });
    expect(counted.status).toBe(400);
  });
});

describe("schemas that take long to read", () => {
  it("are read one at a time: between them others are answered", async () => {
    const { url, post } = await open();
    const properties = Object.fromEntries(
      Array.from({ length: 200 }, (_, i) => [`p${i}`, { type: "string", pattern: "^(a|b)*c{1,20}$" }]),
    );
    const schema = { type: "object", properties };
    const body = { ...hello, response_format: { type: "json_schema", json_schema: { name: "x", schema } } };
    const answered: string[] = [];
    const asked = Array.from({ length: 24 }, async (_, i) => {
      const { status } = await post(`/sessions/s${i}/v1/chat/completions`, body);
      expect([200, 400]).toContain(status);
      answered.push("schema");
    });
    await Promise.race(asked);
    expect((await fetch(`${url}/health`)).status).toBe(200);
    answered.push("health");
    await Promise.all(asked);
    expect(answered.indexOf("health")).toBeLessThan(asked.length / 2);
  });
});

describe("too many", () => {
  it("calls get a time to retry", async () => {
    const { post, url, engine, server } = await open({
      engine: { latencyMs: 60_000 },
      limits: { running: 1, waiting: 1 },
    });
    const controller = new AbortController();
    const ask = (session: string) =>
      fetch(`${url}/sessions/${session}/v1/chat/completions`, {
        method: "POST",
        body: JSON.stringify(hello),
        signal: controller.signal,
      }).catch(() => "left");
    const first = ask("a");
    await until(() => engine.counts.inFlight === 1);
    const second = ask("b");
    await until(() => server.endpoint.gate.waiting === 1);
    const third = await post("/sessions/c/v1/chat/completions", hello);
    expect([third.status, third.headers.get("retry-after"), third.body.error.type]).toEqual([
      429,
      "1",
      "rate_limit_error",
    ]);
    const fourth = await post("/v1/messages", { ...hello, n: 1 });
    expect([fourth.status, fourth.body.error.type]).toEqual([429, "rate_limit_error"]);
    controller.abort();
    expect(await Promise.all([first, second])).toEqual(["left", "left"]);
    expect(engine.counts.mostInFlight).toBe(1);
  });
});

describe("clients that leave", () => {
  it("free their resources, streamed or not, running or waiting", async () => {
    const { url, engine, server } = await open({ engine: { latencyMs: 60_000 }, limits: { running: 2, beginMs: 1 } });
    const controller = new AbortController();
    const requests = [true, false, true, false].map((stream, i) =>
      fetch(`${url}/sessions/s${i}/v1/chat/completions`, {
        method: "POST",
        body: JSON.stringify({ ...hello, stream }),
        signal: controller.signal,
      })
        .then((response) => response.text())
        .catch(() => "gone"),
    );
    await until(() => engine.counts.inFlight === 2 && server.endpoint.gate.waiting === 2);
    controller.abort();
    await Promise.all(requests);
    await until(() => server.endpoint.gate.running + server.endpoint.gate.waiting === 0);
    expect(engine.counts.inFlight).toBe(0);
    expect(engine.counts.disposed).toBe(engine.counts.created);
  });

  it("that read nothing are cut off, and free it too", async () => {
    const { url, engine, server } = await open({
      engine: { reply: () => "x".repeat(4_000_000), contextSize: 8_000_000 },
      limits: { streamBytes: 100_000, stallMs: 200 },
    });
    const { hostname, port } = new URL(url);
    const body = JSON.stringify({ ...hello, stream: true });
    const socket = connect(Number(port), hostname);
    socket.pause();
    socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nHost: ${hostname}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
    socket.on("error", () => undefined);
    await until(() => engine.counts.requests === 1 && server.endpoint.gate.running === 0);
    const read = async () => (await fetch(`${url}/metrics`)).text();
    while (!/cria_streams_cut_total\{reason="slow"\} 1/.test(await read()))
      await new Promise((resolve) => setTimeout(resolve, 20));
    socket.resume();
    await closed;
  });
});

describe("keys", () => {
  const ask = (post: Awaited<ReturnType<typeof open>>["post"], headers: Record<string, string>) =>
    post("/v1/chat/completions", hello, headers);

  it("are needed where there is one, as either API sends them", async () => {
    const { post, url } = await open({ authenticate: authenticateByKey("secret") });
    for (const headers of [
      {},
      { authorization: "Bearer wrong" },
      { authorization: "secret" },
      { "x-api-key": "secret2" },
      { authorization: "Bearer secret:" },
    ]) {
      const { status, body } = await ask(post, headers as object as Record<string, string>);
      expect([status, body.error.type], JSON.stringify(headers)).toEqual([401, "authentication_error"]);
    }
    const messages = await post("/v1/messages", { ...hello, max_tokens: 5 }, { "x-api-key": "no" });
    expect(messages.body).toMatchObject({ type: "error", error: { type: "authentication_error" } });
    for (const path of ["/metrics", "/v1/models", "/sessions/x", "/anything"])
      expect((await fetch(url + path)).status).toBe(401);
    expect((await fetch(`${url}/health`)).status).toBe(200);
    for (const headers of [
      { authorization: "Bearer secret" },
      { "x-api-key": "secret" },
      { authorization: "bearer  secret:s1" },
    ])
      expect((await ask(post, headers as object as Record<string, string>)).status).toBe(200);
    expect((await post("/sessions/s2/v1/chat/completions", hello, { "x-api-key": "secret:s1" })).status).toBe(403);
  });

  it("are needed beyond this machine", () => {
    for (const host of ["0.0.0.0", "192.168.1.5", "::", "example.org"]) {
      expect(() => checkExposure(host, null)).toThrow(
        expect.objectContaining({
          code: "config/no-api-key",
          expected: "an API key, since other machines can reach it",
        }),
      );
      expect(() => checkExposure(host, "k")).not.toThrow();
    }
    for (const host of ["127.0.0.1", "127.1.2.3", "localhost", "::1"])
      expect(() => checkExposure(host, null)).not.toThrow();
  });
});

describe("pages in browsers", () => {
  it("do not reach it by another name, nor from another origin", async () => {
    const rules = { hosts: ["127.0.0.1"], cors: ["https://good.example"] };
    const check = (headers: Record<string, string>) => () => checkOrigin(new Headers(headers), rules);
    for (const host of ["127.0.0.1:80", "localhost:8080", "LOCALHOST", "[::1]:5", "127.0.0.1"])
      expect(check({ host }), host).not.toThrow();
    for (const host of ["evil.example", "127.0.0.1.evil.example:80", "", "localhost.evil.example"])
      expect(check({ host }), host).toThrow(
        expect.objectContaining({ code: "serve/forbidden-origin", subject: "Host" }),
      );
    const host = "localhost:8080";
    expect(check({ host, origin: "http://localhost:8080" })).not.toThrow();
    expect(check({ host, origin: "https://good.example" })).not.toThrow();
    for (const origin of ["https://evil.example", "null", "http://localhost:9", "https://good.example.evil"])
      expect(check({ host, origin }), origin).toThrow(
        expect.objectContaining({ code: "serve/forbidden-origin", subject: "Origin" }),
      );
    expect(() =>
      checkOrigin(new Headers({ host: "any.example", origin: "https://x" }), { hosts: null, cors: ["*"] }),
    ).not.toThrow();
  });

  it("of allowed origins may ask first, others may not", async () => {
    const { url, engine } = await open({ origins: { hosts: ["127.0.0.1"], cors: ["https://good.example"] } });
    const send = (method: string, origin: string) =>
      fetch(`${url}/v1/chat/completions`, {
        method,
        headers: { origin, "access-control-request-method": "POST" },
        ...(method === "POST" ? { body: JSON.stringify(hello) } : {}),
      });
    expect((await send("OPTIONS", "https://good.example")).headers.get("access-control-allow-origin")).toBe(
      "https://good.example",
    );
    expect((await send("OPTIONS", "https://evil.example")).headers.get("access-control-allow-origin")).toBeNull();
    const good = await send("POST", "https://good.example");
    expect([good.status, good.headers.get("access-control-allow-origin")]).toEqual([200, "https://good.example"]);
    expect((await send("POST", "https://evil.example")).status).toBe(403);
    expect(engine.counts.requests).toBe(1);
  });
});

describe("routes", () => {
  it("that are unknown say so", async () => {
    const { post, url } = await open();
    expect((await post("/v1/embeddings", {})).body.error).toMatchObject({ type: "not_found_error" });
    expect((await fetch(`${url}/v1/chat/completions`)).status).toBe(404);
    expect((await post("/v1/messages/batches", {})).body).toMatchObject({
      type: "error",
      error: { type: "not_found_error" },
    });
  });

  it("count their actions", async () => {
    const { post, url } = await open();
    await post("/v1/chat/completions", hello);
    await post("/sessions/s/v1/chat/completions", hello);
    await post("/v1/chat/completions", {});
    const text = await (await fetch(`${url}/metrics`)).text();
    for (const line of [
      'cria_requests_total{route="/v1/chat/completions",status="200"} 1',
      'cria_requests_total{route="/sessions/:session/v1/chat/completions",status="200"} 1',
      'cria_requests_total{route="/v1/chat/completions",status="400"} 1',
      "cria_requests_running 0",
      "cria_requests_waiting 0",
      "cria_sessions 1",
      "cria_engine_sequences 2",
    ])
      expect(text).toContain(line);
    expect(text).toMatch(/cria_completion_tokens_total \d\d/);
  });
});

describe("an end", () => {
  it("lets running requests finish, and takes nothing more", async () => {
    const { post, engine, server, url } = await open({ engine: { latencyMs: 150 } });
    const running = post("/v1/chat/completions", hello);
    await until(() => engine.counts.inFlight === 1);
    const closing = server.close(10_000);
    await expect(fetch(`${url}/health`)).rejects.toThrow();
    expect((await running).status).toBe(200);
    expect(await closing).toBe(0);
    expect(engine.counts.disposed).toBe(engine.counts.created);
  });

  it("aborts requests that take too long", async () => {
    const { post, engine, server } = await open({ engine: { latencyMs: 60_000 } });
    const running = post("/v1/chat/completions", hello);
    await until(() => engine.counts.inFlight === 1);
    expect(await server.close(20)).toBe(1);
    const { status, body } = await running;
    expect([status, body.error.code]).toEqual([503, "serve/ending"]);
    expect(engine.counts.disposed).toBe(engine.counts.created);
  });
});

describe("clients that ask again", () => {
  const ask = (url: string, signal?: AbortSignal, retry = 0) =>
    fetch(`${url}/sessions/s/v1/chat/completions`, {
      method: "POST",
      body: JSON.stringify(hello),
      signal,
      headers: { "x-stainless-retry-count": String(retry) },
    }).then(
      (response) => response.json() as Promise<{ choices: { message: { content: string } }[]; cria: { node: string } }>,
    );

  it("get the missed answer, whether it is finished or not; a new question gets another", async () => {
    // The third answer lasts until its client has disconnected.
    let calls = 0;
    const { url, engine } = await open({ engine: { latencyMs: () => (++calls === 3 ? 60_000 : 0) } });
    const whole = (await ask(url)).cria.node;
    expect((await ask(url, undefined, 1)).cria.node).toBe(whole);
    const sibling = await ask(url);
    expect(sibling.cria.node).not.toBe(whole);
    const controller = new AbortController();
    const left = ask(url, controller.signal).catch(() => "left");
    await until(() => engine.counts.inFlight === 1);
    controller.abort();
    expect(await left).toBe("left");
    await until(() => engine.counts.inFlight === 0);
    const requests = engine.counts.requests;
    const third = await ask(url, undefined, 1);
    expect([whole, sibling.cria.node]).not.toContain(third.cria.node);
    expect(engine.counts.requests).toBe(requests + 1);
    expect((await ask(url, undefined, 2)).cria.node).toBe(third.cria.node);
    expect(engine.counts.requests).toBe(requests + 1);
  });
  it("join one another only where they say that they ask again", async () => {
    const { post, engine } = await open({ engine: { latencyMs: 20 } });
    for (const path of ["/v1/chat/completions", "/sessions/s/v1/chat/completions"]) {
      const answers = await Promise.all(Array.from({ length: 8 }, () => post(path, hello)));
      expect(new Set(answers.map(({ body }) => body.cria.node)).size).toBe(8);
      expect(new Set(answers.map(({ body }) => body.choices[0].message.content)).size).toBe(8);
    }
    expect(engine.counts.requests).toBe(16);
  });

  it("while their first call still runs wait for its answer", async () => {
    const { url, engine } = await open({ engine: { latencyMs: 60_000 } });
    const controller = new AbortController();
    const first = ask(url, controller.signal).catch(() => "left");
    await until(() => engine.counts.inFlight === 1);
    const second = ask(url, controller.signal, 1).catch(() => "left");
    let metrics: Record<string, number> = {};
    while (!metrics.chat_retries && engine.counts.inFlight === 1) {
      const record = await fetch(`${url}/sessions/s/trajectory`);
      ({ metrics } = (await record.json()) as { metrics: Record<string, number> });
    }
    expect(metrics).toMatchObject({ chat_calls: 1, chat_retries: 1 });
    controller.abort();
    expect(await Promise.all([first, second])).toEqual(["left", "left"]);
  });

  it("that lost equal answers together each get one", () => {
    const memory = new RetryMemory(3);
    const [a, b, c] = [[makeAnswer()], [makeAnswer()], [makeAnswer()]];
    for (const answers of [a, b, c]) memory.keep("k", answers!);
    memory.markDelivered(b!);
    expect([memory.find("k"), memory.find("k")]).toEqual([a, c]);
    expect(memory.find("k")).toBe(c);
    memory.forgetDelivered("k");
    expect(memory.find("k")).toBeUndefined();
    for (const answers of [a, b, c, a]) memory.keep("l", answers!);
    expect(memory.find("l")).toBe(b);
  });
});
