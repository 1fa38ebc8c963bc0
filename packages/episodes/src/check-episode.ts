import type { ChatMessage } from "@cria/core";
import {
  checkConversation,
  type DeltaTokenizer,
  type SanityCheckMode,
  type TokenizationCheck,
} from "@cria/tokenizer-delta";
import {
  type AnswerNode,
  type InputNode,
  isAnswer,
  joinTokens,
  listAnswers,
  listPath,
  type MessageGraph,
} from "./message-graph.js";
import { formAnswer, nameCalls } from "./template-messages.js";
import { findTurnForm, type TurnForm } from "./turn-form.js";

export interface CheckEpisodeOptions {
  tokenizer: DeltaTokenizer;
  mode: SanityCheckMode;
  /** True if turns are rendered as in production (`use_inference_chat_template`). */
  production: boolean;
}

/** Compares each answered conversation's tokens with the template's rendering of all its messages. */
export function checkEpisode(graph: MessageGraph, options: CheckEpisodeOptions): TokenizationCheck[] {
  return listEnds([...graph.roots.values()]).map((end) => {
    const path = listPath(end);
    const [root] = path as [InputNode];
    const { tokenizer, production } = options;
    const form = production ? findTurnForm(tokenizer, { schemas: root.tools, production }) : "text";
    return checkConversation(tokenizer, {
      messages: path.flatMap((node) => readMessages(node, form)),
      tools: root.tools,
      tokenIds: joinTokens(end),
      mask: path.flatMap((node) => (isAnswer(node) ? fill(node.said!.tokenIds, 1) : fill(node.tokenIds!, 0))),
      mode: options.mode,
    });
  });
}

function readMessages(node: InputNode | AnswerNode, form: TurnForm): ChatMessage[] {
  return isAnswer(node) ? [formAnswer(node, form)] : nameCalls(node.messages, node.parent);
}

/** The last answer of each conversation. */
function listEnds(inputs: readonly InputNode[]): AnswerNode[] {
  const answers = inputs.flatMap(listAnswers).filter(({ state }) => state === "done");
  return answers.flatMap((answer) => {
    const later = listEnds([...answer.inputs.values()]);
    return later.length > 0 ? later : [answer];
  });
}

const fill = ({ length }: Int32Array, bit: 0 | 1): number[] => new Array<number>(length).fill(bit);
