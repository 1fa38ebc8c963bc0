import { readFileSync } from "node:fs";
import { ConfigError } from "@cria/core";
import { openTracer } from "@cria/rollout";
import { authenticateByKey, listen, type ServedModel } from "@cria/serve";
import { checkExposure, isLoopback } from "@cria/serve/internal";
import { checkArgument, fetchModel } from "@cria/trainer/internal";
import { defineCommand } from "citty";
import { followRun } from "../serve/follow-run.js";
import { openServed } from "../serve/open-served.js";
import { colors as pc } from "../terminal/colors.js";
import { makePrintable } from "../terminal/printable-text.js";
import { showEvents } from "../terminal/show-events.js";
import { readDevice, readNumber, readProjector, readTracing } from "./read-options.js";
import { commonArgs, runCommand } from "./run-command.js";

/** Time for an image's server to answer. */
const IMAGE_MS = 30_000;

const fetchImage: typeof fetch = (input, init) => fetch(input, { ...init, signal: AbortSignal.timeout(IMAGE_MS) });

/** Time for running requests to end after SIGTERM. */
const DRAIN_MS = 30_000;

const args = {
  model: {
    type: "string",
    description:
      "A GGUF, or hf:<owner>/<model>:<quantisation>; for a moved run its base model (default: the embedded policy)",
  },
  adapter: { type: "string", description: "A LoRA adapter (GGUF) on the model" },
  run: { type: "string", description: "A run folder, or one of its checkpoints: the model with the trained weights" },
  role: { type: "string", description: "The role whose adapter is served, of a run that trained one for each" },
  mmproj: {
    type: "string",
    description: "Projector that encodes images for the model (default: the run's, else none)",
  },
  follow: { type: "boolean", description: "Take the run's newer checkpoints as they appear, at the end of a turn" },
  host: {
    type: "string",
    description: "Address to listen on (default: 127.0.0.1); addresses beyond this machine need a key",
  },
  port: { type: "string", description: "0: any free port (default: 8080)" },
  ctx: { type: "string", description: "Most tokens of a conversation (default: the model's, at most 4096)" },
  parallel: { type: "string", description: "Conversations computed at once; others wait (default: 8)" },
  threads: { type: "string", description: "Native threads (default: all cores)" },
  device: { type: "string", description: "auto, cpu, cuda, metal or vulkan (default: auto)" },
  alias: { type: "string", description: "The model's name for clients (default: its file's name)" },
  cors: {
    type: "string",
    description: "Origins of web pages that may call it, separated by commas; * for all (default: none)",
  },
  deterministic: {
    type: "boolean",
    description:
      "Equal seeds give equal answers, bit for bit, regardless of other requests; slower with some quantisations",
  },
  "max-body": { type: "string", description: "Most bytes of a request (default: 2000000; 16000000 with images)" },
  "fetch-images": {
    type: "boolean",
    description:
      "Fetch images that requests name by address: clients can then make the server call any address (default: refused)",
  },
  "image-max-tokens": {
    type: "string",
    description:
      "Tokens that a large image is scaled down to, if the projector takes any size (default: the run's, else its file's)",
  },
  "max-tokens": { type: "string", description: "Most tokens of an answer (default: the rest of the context)" },
  tracing: {
    type: "string",
    description:
      "off, or otel: a span of each request to the model goes to the program's OpenTelemetry SDK (default: off)",
  },
  "api-key-file": {
    type: "string",
    description: "File with the key that clients must send (default: CRIA_API_KEY, else none)",
  },
  ...commonArgs,
} as const;

/** Text below the options in its help. */
export const serveNotes = `cria serve                                       the embedded policy, a toy
cria serve --model model.gguf --adapter adapter.gguf
cria serve --run runs/my-task/default --follow   the newest checkpoint of a training

For clients of OpenAI and Anthropic set OPENAI_BASE_URL to http://127.0.0.1:8080/v1, or ANTHROPIC_BASE_URL to
http://127.0.0.1:8080. Ctrl-C or SIGTERM lets running requests end.`;

export const serveCommand = defineCommand({
  meta: { name: "serve", description: "Serve a model to clients of OpenAI's and Anthropic's APIs" },
  args,
  run: ({ args: given }) =>
    runCommand(given, async (signal) => {
      const say = (text: string) => void process.stderr.write(`${makePrintable(text)}\n`);
      const host = given.host ?? "127.0.0.1";
      const key = readKey(given["api-key-file"]);
      checkExposure(host, key);
      const address = {
        host,
        port: readNumber("port", given.port, { whole: true, least: 0, most: 65_535 }) ?? 8080,
        limits: {
          bodyBytes: readNumber("max-body", given["max-body"], { whole: true, least: 1 }),
          answerTokens: readNumber("max-tokens", given["max-tokens"], { whole: true, least: 1 }),
        },
        authenticate: authenticateByKey(key),
        ...(given["fetch-images"] ? { fetchImage } : {}),
        ...(readTracing(given.tracing) === "otel" ? { tracer: await openTracer() } : {}),
        origins: { hosts: isLoopback(host) ? [host] : null, cors: readOrigins(given.cors) },
      };
      const report = showEvents({ silent: given.json });
      const loading = {
        ...findTarget(given),
        mmproj: await readProjector(given.mmproj, { report, signal }),
        imageMaxTokens: readNumber("image-max-tokens", given["image-max-tokens"], { whole: true, least: 1 }),
        alias: given.alias,
        context: readNumber("ctx", given.ctx, { whole: true, least: 16 }),
        parallel: readNumber("parallel", given.parallel, { whole: true, least: 1, most: 256 }),
        device: readDevice(given.device),
        threads: readNumber("threads", given.threads, { whole: true, least: 1 }),
        deterministic: given.deterministic === true,
        say,
        onWarning: say,
        fetch: (path: string) => fetchModel(path, { report, signal }),
      };
      if (process.stderr.isTTY) process.stderr.write(pc.dim("loading ...\r"));
      const served = await openServed(loading);
      try {
        const server = await listen({ model: served.model, ...address });
        const following =
          given.follow && given.run !== undefined
            ? followRun({ served, endpoint: server.endpoint, run: given.run, signal, say })
            : null;
        try {
          introduce(server.url, served.name, served.model, { json: given.json === true, hasKey: key !== null });
          await new Promise<void>((resolve) => {
            if (signal.aborted) resolve();
            signal.addEventListener("abort", () => resolve(), { once: true });
          });
        } finally {
          const aborted = await server.close(DRAIN_MS);
          if (aborted > 0) say(`${aborted} requests were aborted: they did not end within ${DRAIN_MS / 1000} s`);
          await following;
        }
      } finally {
        await served.engine.dispose();
      }
    }),
});

interface Given {
  model?: string;
  adapter?: string;
  run?: string;
  role?: string;
  follow?: boolean;
}

function findTarget({ model, adapter, run, role, follow = false }: Given) {
  if (run !== undefined) return { target: checkArgument("--run", run), base: model, adapter, role, follow };
  if (follow)
    throw new ConfigError("has nothing to follow", {
      code: "config/bad-argument",
      subject: "--follow",
      expected: "the folder of a run in --run",
      received: "no --run",
    });
  return { target: model, adapter, role };
}

function readKey(file: string | undefined): string | null {
  const key = (
    file === undefined ? process.env.CRIA_API_KEY : readFileSync(checkArgument("--api-key-file", file), "utf8")
  )?.trim();
  if (key !== undefined && /^[\x21-\x7e]+$/.test(key)) return key;
  if (file === undefined && !key) return null;
  throw new ConfigError("holds no key", {
    code: "config/bad-argument",
    subject: file === undefined ? "CRIA_API_KEY" : `--api-key-file ${file}`,
    expected: "one line of letters, digits and signs, without spaces",
    received: key ? "another text" : "nothing",
  });
}

/** @throws ConfigError for a text that is no origin. */
function readOrigins(text: string | undefined): string[] {
  const origins = (text ?? "")
    .split(",")
    .map((origin) => origin.trim().replace(/\/$/, ""))
    .filter(Boolean);
  const wrong = origins.find((origin) => origin !== "*" && !/^https?:\/\/[^/\s]+$/.test(origin));
  if (wrong === undefined) return origins;
  throw new ConfigError("is not the origin of a web page", {
    code: "config/bad-argument",
    subject: "--cors",
    expected: "https://example.org or http://localhost:3000, several separated by commas, or *",
    received: wrong,
  });
}

function introduce(
  url: string,
  source: string,
  { name, contextSize, maxSequences, fingerprint, images }: ServedModel,
  { json, hasKey }: { json: boolean; hasKey: boolean },
): void {
  if (json) {
    const about = { context: contextSize, parallel: maxSequences, fingerprint, images: images !== undefined };
    console.log(JSON.stringify({ url, model: name, ...about }));
    return;
  }
  const key = hasKey ? ' -H "Authorization: Bearer $CRIA_API_KEY"' : "";
  console.log(
    `${pc.bold("cria serve")} ${makePrintable(name)} at ${pc.bold(url)} ${pc.dim(`(${makePrintable(source)}, ${contextSize} tokens${images ? ", images" : ""})`)}`,
  );
  console.log(
    pc.dim(`curl ${url}/v1/chat/completions${key} -d '{"messages": [{"role": "user", "content": "Hello"}]}'`),
  );
}
