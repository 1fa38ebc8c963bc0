import { spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { encodePng } from "@cria/core";
import { makeTinyProjector, TinyModels, visionPairs } from "@cria/engine/testing";
import { listen } from "@cria/serve";
import { runSft, sftConfigSchema } from "@cria/trainer";
import { checkConfig } from "@cria/trainer/internal";
import { afterAll, describe, expect, it } from "vitest";
import { embeddedPolicy } from "../assets/embedded-policy.js";
import { followRun } from "./follow-run.js";
import { openServed } from "./open-served.js";
import { readTokenBytes } from "./token-bytes.js";

const root = join(import.meta.dirname, "..", "..", "..", "..");
const models = new TinyModels();
afterAll(() => models.cleanUp());

/** The built `cria serve`, as a process: `npm test` builds first. */
function start(...words: string[]) {
  const child = spawn(process.execPath, [join(root, "apps", "trainer", "bin", "cria.mjs"), "serve", ...words], {
    env: { ...process.env, CRIA_API_KEY: "" },
  });
  let errors = "";
  child.stderr.on("data", (text) => {
    errors += text;
  });
  const ended = new Promise<{ code: number | null; errors: string }>((resolve) =>
    child.once("close", (code) => resolve({ code, errors })),
  );
  const firstLine = new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).once("line", resolve);
    ended.then(() => reject(new Error(errors)));
  });
  firstLine.catch(() => undefined);
  return { child, ended, firstLine };
}

// biome-ignore lint/suspicious/noExplicitAny: what tests look at in it is what they test.
const readJson = async (response: Response) => (await response.json()) as any;

const question = "There are 70 marbles in a box and 28 marbles in a bag. How many marbles in total?";

describe("cria serve", () => {
  it("answers, repeats itself for a seed, and finishes running requests after SIGTERM", async () => {
    const { child, ended, firstLine } = start(
      "--port",
      "0",
      "--threads",
      "1",
      "--alias",
      "tiny",
      "--deterministic",
      "--json",
    );
    const { url, model, fingerprint } = JSON.parse(await firstLine);
    expect([model, fingerprint]).toEqual([
      "tiny",
      expect.stringMatching(/^cria-[\d.]+\/cria-tiny@[0-9a-f]{8}\/base\/cpu-.+\/deterministic$/),
    ]);
    const ask = async (more: object, headers: Record<string, string> = {}) => {
      const body = { messages: [{ role: "user", content: question }], seed: 3, max_tokens: 20, ...more };
      return fetch(`${url}/v1/chat/completions`, { method: "POST", headers, body: JSON.stringify(body) });
    };
    const answer = await readJson(await ask({ logprobs: true, return_token_ids: true }));
    expect(answer).toMatchObject({ model: "tiny", system_fingerprint: fingerprint });
    const [{ logprobs, token_ids, message }] = answer.choices;
    expect(logprobs.content).toHaveLength(token_ids.length);
    // The bytes of all tokens except the last, which ends the turn, are the text.
    const bytes = logprobs.content.slice(0, -1).flatMap((token: { bytes: number[] }) => token.bytes);
    expect(Buffer.from(bytes).toString()).toContain(message.content);
    const again = await readJson(await ask({}, { "x-session-id": "another" }));
    expect(again.choices[0].message).toEqual(message);
    const running = ask({
      stream: true,
      messages: [{ role: "user", content: "9 ".repeat(100) }],
      max_tokens: 200,
      stop: null,
    });
    await new Promise((resolve) => setTimeout(resolve, 20));
    const streamed = running.then((response) => response.text());
    await running;
    child.kill("SIGTERM");
    expect(await streamed).toMatch(/data: \[DONE\]\n\n$/);
    expect(await ended).toMatchObject({ code: 0 });
  });

  it("says what is wrong with its options before it loads anything", async () => {
    const wrong = [
      [["--host", "0.0.0.0"], /host 0\.0\.0\.0: [\s\S]*--api-key-file/],
      [["--follow"], /--follow: /],
      [["--port", "70000"], /--port: /],
      [["--cors", "example.org"], /--cors: /],
      [["--tracing", "jaeger"], /--tracing: /],
      [["--modle", "x"], /perhaps --model/],
    ] as const;
    const outcomes = await Promise.all(wrong.map(([words]) => start(...words).ended));
    outcomes.forEach(({ code, errors }, i) => {
      expect(errors).toMatch(wrong[i]![1]);
      expect(code).toBe(errors.includes("perhaps") ? 2 : 1);
    });
  });
});

describe("a run that is followed", () => {
  it("is served by its newest checkpoint, and a change loses no request", async () => {
    const folder = join(models.folder, "talks");
    mkdirSync(folder);
    const talk = [
      { role: "user", content: "a?" },
      { role: "assistant", content: "yes" },
    ];
    writeFileSync(join(folder, "talks.jsonl"), JSON.stringify({ messages: talk }));
    const path = await models.write();
    const train = (total_training_steps: number) =>
      runSft(
        checkConfig(
          sftConfigSchema,
          {
            model: { path, lora_rank: 4 },
            data: { train_files: "talks.jsonl", train_batch_size: 2 },
            optim: { lr: 3e-2, lr_warmup_steps: 0 },
            trainer: { default_local_dir: folder, total_training_steps, save_freq: 20, threads: 1 },
          },
          "test",
        ),
        folder,
      );
    const run = await train(1);
    const said: string[] = [];
    const say = (text: string) => void said.push(text);
    const served = await openServed({
      target: run.path,
      follow: true,
      context: 64,
      parallel: 4,
      threads: 1,
      deterministic: true,
      say,
      onWarning: say,
      fetch: async (given) => given,
    });
    const server = await listen({ model: served.model });
    const controller = new AbortController();
    const { endpoint } = server;
    const following = followRun({ served, endpoint, run: run.path, signal: controller.signal, say, everyMs: 10 });
    const ask = async () => {
      const body = { messages: [{ role: "user", content: "a?" }], temperature: 0, max_tokens: 8 };
      const response = await fetch(`${server.url}/v1/chat/completions`, { method: "POST", body: JSON.stringify(body) });
      expect(response.status).toBe(200);
      return await readJson(response);
    };
    try {
      const first = await ask();
      expect(first.cria.policy_version).toBe(1);
      expect(first.choices[0].message.content).not.toBe("yes");
      let isTraining = true;
      const training = train(40).finally(() => {
        isTraining = false;
      });
      const versions: number[] = [];
      // While it trains: every request is answered, and versions only grow.
      while (isTraining) versions.push((await ask()).cria.policy_version);
      await training;
      while (served.model.policyVersion < 40) await new Promise((resolve) => setTimeout(resolve, 20));
      const last = await ask();
      expect(last.cria.policy_version).toBe(40);
      expect(last.choices[0].message.content).toBe("yes");
      expect(last.system_fingerprint).not.toBe(first.system_fingerprint);
      expect(versions).toEqual([...versions].sort((a, b) => a - b));
      expect(said.some((text) => text.includes("now serving the run after step 40"))).toBe(true);
    } finally {
      controller.abort();
      await following;
      await server.close();
      await served.engine.dispose();
    }
  });
});

it("scales images down to the tokens of the option", async () => {
  const { model, projector } = visionPairs.find(({ name }) => name === "Qwen2.5-VL")!;
  const mmproj = join(models.folder, "mmproj.gguf");
  await makeTinyProjector(mmproj, projector);
  const files = ["--model", await models.write(model), "--mmproj", mmproj];
  const { child, ended, firstLine } = start(
    ...files,
    ...["--image-max-tokens", "16", "--threads", "1", "--port", "0", "--json"],
  );
  const { url } = JSON.parse(await firstLine);
  const count = async (content: object[]): Promise<number> => {
    const body = JSON.stringify({ max_tokens: 1, messages: [{ role: "user", content }] });
    return (await readJson(await fetch(`${url}/v1/messages/count_tokens`, { method: "POST", body }))).input_tokens;
  };
  const data = Buffer.from(encodePng({ width: 1000, height: 1000, rgb: new Uint8Array(3_000_000) })).toString("base64");
  const image = { type: "image", source: { type: "base64", media_type: "image/png", data } };
  const text = { type: "text", text: "What?" };
  const tokens = (await count([image, text])) - (await count([text]));
  child.kill("SIGTERM");
  await ended;
  expect(tokens).toBeGreaterThan(2);
  // Between two marks.
  expect(tokens).toBeLessThanOrEqual(18);
});

describe("bytes of tokens", () => {
  it("are those of the vocabulary, parts of characters too", async () => {
    const bytesOf = await readTokenBytes(embeddedPolicy);
    const served = await openServed({
      threads: 1,
      parallel: 1,
      deterministic: true,
      say: () => undefined,
      onWarning: () => undefined,
      fetch: async (path) => path,
    });
    try {
      for (const text of ["70 marbles in a box", "é🦙\n\t ~", "<|im_end|> ▁"]) {
        const ids = served.engine.tokenize(text, { special: false });
        const bytes = [...ids].flatMap((id) => [...bytesOf(id)!]);
        expect(Buffer.from(bytes).toString("utf8").trimStart()).toBe(text.trimStart());
      }
      expect(bytesOf(10_000_000)).toBeNull();
    } finally {
      await served.engine.dispose();
    }
  });
});
