import type { ChatMessage } from "cria";
import { type Call, writeCall } from "../learn/calls.js";
import type { Truth } from "../learn/judge.js";
import { makeRandom, pick } from "../learn/random.js";
import { type Book, catalogue } from "./desk.js";

export type Split = "train" | "held-out";

export interface Request {
  text: string;
  book: Book;
}

/** Phrasings of requests; the title ends at a place that a model must find. */
export const phrasings: Record<Split, readonly string[]> = {
  train: [
    "I would like to borrow {}.",
    "Please lend me {} today.",
    "Can I take {} home?",
    "Do you have {} for my sister?",
    "{}, please. Until when may I keep it?",
    "My teacher told me to read {}. Lend it to me.",
    "I am looking for {} and want to take it with me.",
    "When must {} be back if I borrow it now?",
  ],
  "held-out": [
    "May I have {} for a while?",
    "A friend wants to read {} on a train. Check it out for me.",
    "Is {} here? Then I take it.",
    "Put {} on my card and tell me when it is due.",
  ],
};

const books: Record<Split, readonly Book[]> = {
  train: catalogue.filter(({ isHeldOut }) => !isHeldOut),
  "held-out": catalogue.filter(({ isHeldOut }) => isHeldOut),
};

/** The request of a number: the same number gives the same one. */
export function makeRequest(seed: number, split: Split): Request {
  const random = makeRandom(seed);
  for (let i = 0; i < 8; i++) random();
  const book = pick(books[split], random);
  return { book, text: pick(phrasings[split], random).replace("{}", book.title) };
}

/** The model's chat template knows no tools: the prompt lists them. */
export const makePrompt = ({ text }: Request): ChatMessage[] => [
  {
    role: "system",
    content: [
      "Tools:",
      "search(title: string): the id of a book",
      "loan(id: integer): lends it, gives the date when it is due",
      'Call a tool with <tool_call>{"name": ..., "arguments": {...}}</tool_call>. Search, lend, then say when it is due.',
    ].join("\n"),
  },
  { role: "user", content: text },
];

const listCalls = ({ title, id }: Book): Call[] => [
  { name: "search", arguments: { title } },
  { name: "loan", arguments: { id } },
];

/** A conversation as it should be: three turns. */
export function makeDemonstration(request: Request): ChatMessage[] {
  const { id, due } = request.book;
  const answers = [String(id), due];
  return [
    ...makePrompt(request),
    ...listCalls(request.book).flatMap((call, i): ChatMessage[] => [
      { role: "assistant", content: writeCall(call) },
      { role: "tool", content: answers[i]! },
    ]),
    { role: "assistant", content: `It is due on ${due}.` },
  ];
}

/** A row of a training, or of a measurement. */
export function makeRow(request: Request) {
  const truth: Truth = { calls: listCalls(request.book), answer: request.book.due };
  return {
    data_source: "library-desk",
    prompt: makePrompt(request),
    reward_model: { style: "rule", ground_truth: truth },
  };
}
