// Texts for the published model to score: ordinary text, and conversations with tools in ChatML.
import { readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "..", "..", "..");

const TOOLS = [
  tool("get_weather", "The weather of a city.", { city: { type: "string" }, day: { type: "string" } }),
  tool("convert_currency", "Converts an amount of money.", {
    amount: { type: "number" },
    from: { type: "string" },
    to: { type: "string" },
  }),
  tool("find_train", "The next train between two stations.", { from: { type: "string" }, to: { type: "string" } }),
];

function tool(name, description, properties) {
  const parameters = { type: "object", properties, required: Object.keys(properties) };
  return JSON.stringify({ type: "function", function: { name, description, parameters } });
}

const CONVERSATIONS = [
  [
    "Will it rain in Gdańsk tomorrow?",
    "get_weather",
    { city: "Gdańsk", day: "tomorrow" },
    { sky: "rain", high: 9 },
    "Yes: rain, and at most 9 °C.",
  ],
  [
    "How much is 250 EUR in yen?",
    "convert_currency",
    { amount: 250, from: "EUR", to: "JPY" },
    { amount: 40125 },
    "250 EUR are 40,125 yen.",
  ],
  [
    "When can I leave Porto for Lisbon?",
    "find_train",
    { from: "Porto", to: "Lisbon" },
    { leaves: "14:45", platform: 3 },
    "At 14:45, from platform 3.",
  ],
  [
    "东京今天天气怎么样？",
    "get_weather",
    { city: "Tokyo", day: "today" },
    { sky: "clear", high: 24 },
    "东京今天晴，最高 24 度。",
  ],
  [
    "Is 100 USD more than 90 CHF?",
    "convert_currency",
    { amount: 100, from: "USD", to: "CHF" },
    { amount: 88.2 },
    "No. 100 USD are 88.20 CHF.",
  ],
  [
    "A train from Bern to Zürich, please 🚆",
    "find_train",
    { from: "Bern", to: "Zürich HB" },
    { leaves: "07:02", platform: 8 },
    "07:02, platform 8.",
  ],
];

function renderConversation(turns) {
  const message = (role, content) => `<|im_start|>${role}\n${content}<|im_end|>\n`;
  const calls = turns.flatMap(([question, name, args, answer, reply]) => [
    message("user", question),
    message("assistant", `<tool_call>\n${JSON.stringify({ name, arguments: args })}\n</tool_call>`),
    message("user", `<tool_response>\n${JSON.stringify(answer)}\n</tool_response>`),
    message("assistant", reply),
  ]);
  const system = `You may call these tools:\n<tools>\n${TOOLS.join("\n")}\n</tools>\nCall one as <tool_call>{"name": ..., "arguments": {...}}</tool_call>.`;
  return [message("system", system), ...calls].join("");
}

/** Token ids of about 4,000 tokens of ordinary text, in pieces of at most `length`. */
export function makeTextSequences(model, count = 4000, length = 1000) {
  const sample = join(root, "examples", "gsm8k", "sample");
  const licences = [root, sample].map((folder) => readFileSync(join(folder, "LICENSE"), "utf8")).join("\n");
  const files = ["test.jsonl", "train.jsonl"].map((file) => readFileSync(join(sample, file), "utf8"));
  const rows = files.flatMap((file) => file.trim().split("\n"));
  const questions = rows.map((row) => JSON.parse(row)).map(({ question, answer }) => `${question}\n${answer}\n`);
  const ids = [...model.tokenize(licences + questions.join("\n"), { special: false })].slice(0, count);
  const pieces = [];
  for (let begin = 0; begin < ids.length; begin += length) pieces.push(ids.slice(begin, begin + length));
  return pieces;
}

/** Token ids of conversations with tools, six of three turns each: 2,000 tokens. */
export function makeChatSequences(model) {
  return CONVERSATIONS.map((_, i) => {
    const turns = [0, 1, 2].map((k) => CONVERSATIONS[(i + k) % CONVERSATIONS.length]);
    return [...model.tokenize(renderConversation(turns), { special: true })];
  });
}

/** Token ids of prompts of one question each, up to where the assistant speaks. */
export function makePrompts(model) {
  const questions = [
    ...CONVERSATIONS.map(([question]) => question),
    "Write a short poem about a llama.",
    "Explain how a bicycle stays upright.",
    "def fibonacci(n):",
    "List the planets of the solar system.",
  ];
  return questions.map((question) => [
    ...model.tokenize(`<|im_start|>user\n${question}<|im_end|>\n<|im_start|>assistant\n`, { special: true }),
  ]);
}
