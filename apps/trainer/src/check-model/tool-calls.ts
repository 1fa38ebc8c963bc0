import { isDeepStrictEqual } from "node:util";
import { type ChatMessage, TokenizerError, type ToolSchema } from "@cria/core";
import type { DeltaTokenizer } from "@cria/tokenizer-delta";
import { getToolFormat, toolFormats } from "@cria/tools";
import { probeModel } from "@cria/trainer/internal";
import { type Finding, judge, other } from "./finding.js";

export const CALLS = "tool calls";

/** Arguments of every type, with texts that are hard to quote. */
const ARGUMENTS: readonly Record<string, unknown>[] = [
  { text: 'She said "no";\n\tC:\\new', count: 3, share: 0.25, isOpen: true },
  {
    text: "Größe 🦙 <b>&amp;</b>",
    count: -1,
    share: 1e-3,
    isOpen: false,
    tags: ["a", "b c"],
    place: { city: "Lima", zip: "01" },
  },
];
const schema: ToolSchema = {
  type: "function",
  function: {
    name: "book_room",
    description: "Books a room.",
    parameters: {
      type: "object",
      properties: {
        text: { type: "string", description: "A note." },
        count: { type: "integer", description: "Guests." },
        share: { type: "number", description: "A share." },
        isOpen: { type: "boolean", description: "Whether the date is open." },
        tags: { type: "array", items: { type: "string" }, description: "Tags." },
        place: {
          type: "object",
          properties: { city: { type: "string" }, zip: { type: "string" } },
          description: "Where.",
        },
      },
      required: ["text"],
    },
  },
};

/**
 * Prints an assistant's calls with the template, turns them into tokens and back, and reads them with the parser that
 * `cria train` would choose for the template.
 */
export function checkToolCalls(tokenizer: DeltaTokenizer): Finding[] {
  const probe = probeModel(tokenizer);
  if (probe.format === null) {
    const printed = probe.listsTools
      ? "the template lists tools, but no parser reads the calls that it prints"
      : "the template knows no tools";
    const remedy = `name a format (multi_turn.format: ${toolFormats.names().join(", ")}), and describe the tools and it in the system message`;
    return [other("not supported", CALLS, printed, remedy)];
  }
  if (!printsCalls(tokenizer)) {
    const remedy =
      "nothing for rollouts, which keep sampled tokens; demonstrations lose their calls with this template";
    return [other("not supported", CALLS, `${probe.format}: the template does not print calls`, remedy)];
  }
  const compare = (list: readonly Record<string, unknown>[]) => {
    const difference = findDifference(tokenizer, probe.format!, list);
    return difference === null ? [] : [difference];
  };
  const alone = ARGUMENTS.flatMap((given) => compare([given]));
  const pair = countPrinted(tokenizer);
  const wrong = [...alone, ...(pair === "both" ? compare(ARGUMENTS) : [])];
  const shows = probe.listsTools ? "" : "; the template does not list the tools";
  const counts = {
    both: "one and two in a turn, come back",
    first: "one in a turn, come back; of two in a turn the template prints the first alone",
    refused: "one in a turn, come back; the template refuses two",
  }[pair];
  const found = `${probe.format}: ${wrong.length === 0 ? `calls of all types, ${counts}` : wrong[0]}${shows}`;
  const findings = [
    judge(CALLS, wrong.length === 0, found, "write a parser for this template (multi_turn.format: ./mine.ts#parse)"),
  ];
  if (!probe.showsAnswers)
    findings.push(
      other("not supported", `${CALLS}, answers`, "the template does not print tools' answers", "use another template"),
    );
  return findings;
}

/** The difference between a turn's calls before and after; null: none. */
function findDifference(
  tokenizer: DeltaTokenizer,
  format: string,
  list: readonly Record<string, unknown>[],
): string | null {
  try {
    const { tokenIds } = tokenizer.encodeAssistant(makeCalls(list));
    const text = cutEnd(tokenizer, tokenizer.tokenizer.detokenize(tokenIds));
    const { calls } = getToolFormat(format).parse(text, [schema]);
    const received = calls.map((call) => (call.error ? call.error : call.arguments));
    if (isDeepStrictEqual(received, list)) return null;
    return `printed ${JSON.stringify(text)}, read ${JSON.stringify(received)}`;
  } catch (error) {
    return (error as Error).message.split("\n")[0]!;
  }
}

function makeCalls(list: readonly Record<string, unknown>[]): ChatMessage {
  const tool_calls = list.map((given, i) => ({
    id: `call0000${i}`,
    type: "function" as const,
    function: { name: schema.function.name, arguments: given },
  }));
  return { role: "assistant", content: "", tool_calls };
}

/** False for a template that drops the calls of a turn: Granite 3.3's, for example. */
function printsCalls(tokenizer: DeltaTokenizer): boolean {
  try {
    const { tokenIds } = tokenizer.encodeAssistant(makeCalls([{}]));
    return tokenizer.tokenizer.detokenize(tokenIds).includes(schema.function.name);
  } catch (error) {
    if (error instanceof TokenizerError) return true; // the comparison says why
    throw error;
  }
}

/**
 * The calls that a template prints of a turn with two: both; the first alone, as gpt-oss's does; or it raises an error, as
 * Llama 3's do.
 */
function countPrinted(tokenizer: DeltaTokenizer): "both" | "first" | "refused" {
  const print = (list: typeof ARGUMENTS) =>
    tokenizer.tokenizer.detokenize(tokenizer.encodeAssistant(makeCalls(list)).tokenIds);
  try {
    return print(ARGUMENTS) === print(ARGUMENTS.slice(0, 1)) ? "first" : "both";
  } catch (error) {
    if (error instanceof TokenizerError) return "refused";
    throw error;
  }
}

/** A turn's text without its end. */
export function cutEnd(tokenizer: DeltaTokenizer, text: string): string {
  const end = tokenizer.listEndTexts().find((candidate) => text.endsWith(candidate));
  return end === undefined ? text : text.slice(0, -end.length);
}
