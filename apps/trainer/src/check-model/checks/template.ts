import type { ChatMessage } from "@cria/core";
import { type ConversationToCheck, checkConversation, DeltaTokenizer } from "@cria/tokenizer-delta";
import { splitByMask } from "@cria/tokenizer-delta/internal";
import { describeError, type Finding, fine, judge, other } from "../finding.js";
import type { CheckContext, ModelCheck } from "../model-check.js";
import { sampleConversations } from "../sample-conversations.js";
import { CALLS, checkToolCalls, cutEnd } from "../tool-calls.js";

const DELTAS = "template, deltas";
const ENDS = "template, ends of turns";

/**
 * Rollouts never tokenize sampled text again, so the template must print a conversation piece by piece exactly as it
 * prints the whole.
 */
export const templateCheck: ModelCheck = {
  name: "template",
  needsLora: false,
  seconds: 5,
  async run(context: CheckContext) {
    context.begin(DELTAS);
    const model = await context.load({ contextSize: 64, maxSequences: 1, trainable: "none" });
    try {
      if (model.chatTemplate === null)
        return [
          other(
            "not supported",
            DELTAS,
            "the file has no chat template",
            "use an instruction-tuned model, or add a template to the file",
          ),
        ];
      const tokenizer = DeltaTokenizer.forModel(model);
      const attempt = (name: string, work: () => Finding[]) => {
        context.begin(name);
        try {
          return work();
        } catch (error) {
          return [describeError(name, error)];
        }
      };
      return [
        ...attempt(DELTAS, () => [checkDeltas(tokenizer)]),
        ...attempt(ENDS, () => [checkEnds(tokenizer)]),
        ...attempt(CALLS, () => checkToolCalls(tokenizer)),
      ];
    } finally {
      await model.dispose();
    }
  },
};

type Outcome = ReturnType<typeof checkConversation>["kind"];

/**
 * Compares each conversation as a rollout builds it (prompt, sampled turns, deltas) with its whole rendering, by the
 * check that ends each rollout.
 * @param check for tests.
 */
export function checkDeltas(
  tokenizer: DeltaTokenizer,
  check: (
    tokenizer: DeltaTokenizer,
    conversation: ConversationToCheck,
  ) => { kind: Outcome; reason?: string } = checkConversation,
): Finding {
  const outcomes = new Map<Outcome, string[]>();
  let first = "";
  let why = "";
  for (const [name, { messages, tools }] of Object.entries(sampleConversations)) {
    const { kind, detail } = compare(tokenizer, { messages, tools }, check);
    outcomes.set(kind, [...(outcomes.get(kind) ?? []), name]);
    if (kind === "mismatch") first ||= `${name}: ${detail}`;
    if (kind === "unchecked") why ||= detail.split("\n")[0]!;
  }
  const list = (kinds: Outcome[]) => kinds.flatMap((kind) => outcomes.get(kind) ?? []);
  const [wrong, refused, rewritten] = [list(["mismatch"]), list(["unchecked"]), list(["rewritten", "other_end"])];
  const equal = list(["equal", "drift"]);
  const total = Object.keys(sampleConversations).length;
  const notes = [
    `${equal.length} of ${total} conversations as the template prints them whole`,
    ...(rewritten.length > 0 ? [`${rewritten.length} whose earlier turns it rewrites (${rewritten.join(", ")})`] : []),
    ...(refused.length > 0 ? [`${refused.length} that it refuses (${refused.join(", ")}: ${why})`] : []),
    ...(wrong.length > 0 ? [`${wrong.length} otherwise (${first})`] : []),
  ];
  if (equal.length + rewritten.length === 0 && wrong.length === 0)
    return other("not supported", DELTAS, notes.join("; "), "use a template that takes conversations of several turns");
  return judge(
    DELTAS,
    wrong.length === 0,
    notes.join("; "),
    "set multi_turn.use_inference_chat_template, or repair the template",
  );
}

function compare(
  tokenizer: DeltaTokenizer,
  conversation: Pick<ConversationToCheck, "messages" | "tools">,
  check: NonNullable<Parameters<typeof checkDeltas>[1]>,
): { kind: Outcome; detail: string } {
  try {
    const { tokenIds, mask } = tokenizer.encodeMessagesWithMask(conversation.messages, conversation.tools);
    const examine = (
      messages: readonly ChatMessage[],
    ): ReturnType<typeof check> & { expected?: string; received?: string } =>
      check(tokenizer, { ...conversation, messages: [...messages], tokenIds, mask });
    const plain = examine(conversation.messages);
    // A rollout records what was sampled: with the empty thought, for example, that Qwen3's template prints.
    const found =
      plain.kind === "mismatch" ? examine(recordTurns(tokenizer, conversation.messages, { tokenIds, mask })) : plain;
    const difference = `expected ${JSON.stringify(found.expected)}, received ${JSON.stringify(found.received)}`;
    return { kind: found.kind, detail: found.reason ?? difference };
  } catch (error) {
    // The template refuses such a conversation, or cannot print one of its turns.
    return { kind: "unchecked", detail: (error as Error).message };
  }
}

/** The messages as a rollout records them: an assistant's turn without calls has the text of its tokens. */
function recordTurns(
  tokenizer: DeltaTokenizer,
  messages: readonly ChatMessage[],
  { tokenIds, mask }: Required<Pick<ConversationToCheck, "tokenIds" | "mask">>,
): ChatMessage[] {
  const turns = splitByMask(tokenIds, mask).filter(({ sampled }) => sampled);
  return messages.map((message) => {
    if (message.role !== "assistant") return message;
    const { ids } = turns.shift() ?? { ids: [] };
    return message.tool_calls
      ? message
      : { role: "assistant", content: cutEnd(tokenizer, tokenizer.tokenizer.detokenize(ids)) };
  });
}

/** Checks that the template ends a turn with a token that ends generation: otherwise turns never stop. */
function checkEnds(tokenizer: DeltaTokenizer): Finding {
  const ends = tokenizer.listEndTexts();
  if (ends.length === 0)
    return other(
      "falls short",
      ENDS,
      "the file names no token that ends a turn",
      "set tokenizer.ggml.eos_token_id in the file",
    );
  const message: ChatMessage = { role: "assistant", content: "Hello." };
  const { tokenIds } = tokenizer.encodeAssistant(message);
  const texts = ends.map((text) => JSON.stringify(text)).join(", ");
  const last = tokenIds.length > 0 ? tokenizer.tokenizer.detokenize([tokenIds.at(-1)!]) : "";
  if (ends.includes(last))
    return fine(ENDS, `a turn ends with ${JSON.stringify(last)}, which ends generation; so do ${texts}`);
  // Some templates print the end only with the next message.
  const delta = tokenizer.renderDelta([{ role: "user", content: "And?" }], false);
  const end = ends.find((text) => delta.startsWith(text));
  const found = `${texts} end generation, and the template prints ${JSON.stringify(delta.slice(0, 40))} after a turn`;
  return judge(
    ENDS,
    end !== undefined,
    found,
    "name the template's end of turn in actor_rollout_ref.rollout.stop, or repair the file",
  );
}
