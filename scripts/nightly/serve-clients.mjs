// Clients of an endpoint, in a separate process: `sessions` conversations at once, each of a few turns, by three APIs,
// streamed or not. Unless they are calm, they disconnect at random and retry, read slowly, and strangers send broken,
// oversized and endless bodies in between. A session's answers depend only on its id, so both kinds of clients must get
// the same.
//
//   node serve-clients.mjs '{"url": "http://127.0.0.1:8080", "sessions": 200, "turns": 2, "calm": false, "atOnce": 200, "seed": 1}'
//
// Prints one JSON object: the answers by session, and the statuses that the strangers got.
import { Agent, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

const { url, sessions, turns, calm, atOnce, seed, maxTokens = 16 } = JSON.parse(process.argv[2]);
const agent = new Agent({ keepAlive: true });
const counts = { answered: 0, hungUp: 0, slow: 0, strangers: {} };

/** Uniform numbers in [0, 1) (mulberry32). */
function makeUniform(from) {
  let state = from >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/**
 * Sends a body and reads the answer. `hangUpMs`: the connection is cut after so long. `pauseMs`: between two pieces.
 * @param {string} path @param {string} body
 * @param {{ hangUpMs?: number, pauseMs?: number, headers?: Record<string, string> }} options
 * @returns {Promise<{ status: number | undefined, text: string }>}
 */
function send(path, body, { hangUpMs, pauseMs = 0, headers = {} } = {}) {
  return new Promise((resolve, reject) => {
    const sent = request(url + path, {
      method: "POST",
      agent,
      headers: { "content-type": "application/json", ...headers },
    });
    const timer = hangUpMs === undefined ? undefined : setTimeout(() => sent.destroy(new Error("hung up")), hangUpMs);
    sent.on("error", (error) => {
      clearTimeout(timer);
      reject(error);
    });
    sent.on("response", async (response) => {
      try {
        let text = "";
        for await (const chunk of response) {
          text += chunk;
          if (pauseMs > 0) await sleep(pauseMs);
        }
        clearTimeout(timer);
        resolve({ status: response.statusCode, text });
      } catch (error) {
        clearTimeout(timer);
        reject(error);
      }
    });
    sent.end(body);
  });
}

const readEvents = (text) =>
  text
    .split("\n\n")
    .filter((block) => block.includes("data: ") && !block.includes("[DONE]"))
    .map((block) => JSON.parse(block.slice(block.indexOf("data: ") + 6)));

/** Each API: how a turn is asked, and the text and token ids of its answer. */
const apis = {
  chat: {
    path: "/v1/chat/completions",
    body: (messages, stream) => ({ messages, stream, max_tokens: maxTokens, return_token_ids: true }),
    read: (text, stream) => {
      if (!stream) {
        const [choice] = JSON.parse(text).choices;
        return { text: choice.message.content ?? "", ids: choice.token_ids };
      }
      const choices = readEvents(text).flatMap((event) => event.choices);
      const ids = choices.flatMap((choice) => choice.token_ids ?? []);
      return { text: choices.map(({ delta }) => delta.content ?? "").join(""), ids };
    },
  },
  messages: {
    path: "/v1/messages",
    body: (messages, stream) => ({ messages, stream, max_tokens: maxTokens, return_token_ids: true }),
    read: (text, stream) => {
      if (!stream) {
        const answer = JSON.parse(text);
        return { text: answer.content.map((block) => block.text ?? "").join(""), ids: answer.token_ids };
      }
      const events = readEvents(text);
      const ids = events.find(({ type }) => type === "message_delta").token_ids;
      return { text: events.map(({ delta }) => delta?.text ?? "").join(""), ids };
    },
  },
  responses: {
    path: "/v1/responses",
    body: (messages, stream) => ({ input: messages, stream, max_output_tokens: maxTokens, return_token_ids: true }),
    read: (text, stream) => {
      const response = stream ? readEvents(text).at(-1).response : JSON.parse(text);
      const said = response.output.filter(({ type }) => type === "message");
      return { text: said.map(({ content }) => content[0].text).join(""), ids: response.token_ids };
    },
  },
};

/** One answer, asked for until it is whole. */
async function ask(session, { path, body, read }, messages, uniform) {
  const stream = uniform() < 0.5;
  const text = JSON.stringify(body(messages, stream));
  for (let retry = 0; ; retry++) {
    const mood = calm ? 1 : uniform();
    const options = mood < 0.3 ? { hangUpMs: Math.floor(uniform() * 400) } : mood < 0.4 ? { pauseMs: 20 } : {};
    if (options.pauseMs) counts.slow++;
    // The header by which OpenAI's and Anthropic's clients mark a retry.
    options.headers = { "x-stainless-retry-count": String(retry) };
    try {
      const answer = await send(`/sessions/${session}${path}`, text, options);
      if (answer.status === 429) {
        await sleep(50);
        continue;
      }
      if (answer.status !== 200) throw new Error(`${answer.status} ${answer.text}`);
      counts.answered++;
      return read(answer.text, stream);
    } catch (error) {
      if (options.hangUpMs === undefined) throw error;
      counts.hungUp++;
    }
  }
}

async function talk(index) {
  const uniform = makeUniform(seed * 1_000_003 + index);
  const session = `soak-${index}`;
  const api = Object.values(apis)[index % 3];
  const messages = [];
  const answers = [];
  for (let turn = 0; turn < turns; turn++) {
    const [a, b] = [1 + ((index * 7 + turn) % 90), 1 + ((index * 13 + turn) % 90)];
    messages.push({ role: "user", content: `There are ${a} marbles in a box and ${b} in a bag. How many in total?` });
    if (!calm) await sleep(Math.floor(uniform() * 200));
    const answer = await ask(session, api, messages, uniform);
    answers.push(answer);
    messages.push({ role: "assistant", content: answer.text });
  }
  await send(`/sessions/${session}/end`, "{}");
  return [session, answers];
}

/** Sends a hostile request, and counts the server's answer. */
async function bother(index) {
  const uniform = makeUniform(seed * 7_000_003 + index);
  await sleep(Math.floor(uniform() * 1500));
  const path = Object.values(apis)[index % 3].path;
  const bodies = [
    "{",
    "null",
    '{"messages": 5, "input": 5}',
    `{"messages": ${"[".repeat(50_000)}`,
    `${'{"a":'.repeat(20_000)}1${"}".repeat(20_000)}`,
    JSON.stringify({
      messages: [{ role: "user", content: "x".repeat(1_900_000) }],
      input: "x".repeat(10),
      max_tokens: 5,
    }),
    "x".repeat(3_000_000),
    JSON.stringify({ messages: [{ role: "user", content: "\ud800".repeat(1000) }], input: "\ud800", max_tokens: 1 }),
  ];
  const body = bodies[Math.floor(uniform() * bodies.length)];
  // A server that refuses a body does not read it to its end: writing the rest may fail.
  const status = await send(path, body).then(
    (answer) => String(answer.status),
    () => "closed",
  );
  counts.strangers[status] = (counts.strangers[status] ?? 0) + 1;
}

/** A body without an end, until the server has had enough. @returns {Promise<void>} */
function pour() {
  return new Promise((resolve) => {
    const sent = request(`${url}/v1/chat/completions`, { method: "POST" });
    const timer = setInterval(() => sent.write("x".repeat(100_000)), 5);
    const end = (status) => {
      clearInterval(timer);
      counts.strangers[status] = (counts.strangers[status] ?? 0) + 1;
      sent.destroy();
      resolve();
    };
    sent.on("response", (response) => {
      response.resume();
      end(String(response.statusCode));
    });
    sent.on("error", () => end("closed"));
  });
}

const waiting = Array.from({ length: sessions }, (_, index) => index);
const answers = {};
const work = async () => {
  for (let index = waiting.shift(); index !== undefined; index = waiting.shift()) {
    const [session, said] = await talk(index);
    answers[session] = said;
  }
};
const strangers = calm ? [] : [...Array.from({ length: sessions / 4 }, (_, i) => bother(i)), pour(), pour()];
await Promise.all([...Array.from({ length: atOnce }, work), ...strangers]);
agent.destroy();
console.log(JSON.stringify({ answers, counts }));
