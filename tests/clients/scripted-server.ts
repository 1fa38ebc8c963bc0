import { type FakeContext, FakeEngine, type FakeReply } from "@cria/core/testing";
import { authenticateByKey, type Listening, listen, serveEngine } from "@cria/serve";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import { weather } from "./topic.js";

export interface ScriptedServer {
  server: Listening;
  engine: FakeEngine;
  /** Grammars of the answers so far, undefined for an answer without one. */
  grammars: (string | undefined)[];
}

export const KEY = "a key";
export const SLOW_QUESTION = "Think slowly.";
/** Tokens of the model's context. */
export const CONTEXT = 8192;

/** The scripted model's calls, answer by answer; then it gives its last text. */
export const CALLS = [["weather Bern", "clock"], ["weather Uri"]];
export const SAID = "Bern: sunny, noon, Uri: sunny";
export const THOUGHT = "I need both tools.";
export const HELLO = "Hello there.";
export const LOOK_QUESTION = "What is on it?";

const say = (name: string, input: object) => `<tool_call>\n${JSON.stringify({ name, arguments: input })}\n</tool_call>`;

function reply({ text, options }: FakeContext): FakeReply {
  if (options.grammar !== undefined) return '{"city":"Bern","degrees":21}';
  if (text.includes(LOOK_QUESTION)) return `${text.split("<|image_start|>").length - 1} image`;
  if (!text.includes(weather.question)) return HELLO;
  const [, ...talk] = text.split(weather.question);
  const answers = [...talk.join("").matchAll(/<tool_response>\n([\s\S]*?)\n<\/tool_response>/g)].map(
    ([, said]) => said!,
  );
  if (answers.length === 0)
    return `<think>\n${THOUGHT}\n</think>\n\nI look. ${say("weather", { city: "Bern" })}\n${say("clock", {})}`;
  return answers.length === 2 ? say("weather", { city: "Uri" }) : answers.join(", ");
}

/** A server of a model with known answers. */
export async function openScripted(): Promise<ScriptedServer> {
  const grammars: (string | undefined)[] = [];
  const engine = new FakeEngine({
    reply: (context) => {
      grammars.push(context.options.grammar);
      return reply(context);
    },
    // The slow answer is aborted, not awaited.
    latencyMs: ({ text }) => (text.includes(SLOW_QUESTION) ? 600_000 : 0),
    contextSize: CONTEXT,
    images: true,
  });
  const model = serveEngine({
    engine,
    tokenizer: DeltaTokenizer.forModel(engine),
    name: "scripted",
    fingerprint: "scripted",
    format: "hermes",
  });
  const server = await listen({ model, authenticate: authenticateByKey(KEY) });
  return { server, engine, grammars };
}
