import { type ChatMessage, ConfigError } from "@cria/core";
import { showContent } from "@cria/core/internal";
import type { RewardRequest } from "@cria/rollout";
import { ChatTemplate } from "@cria/tokenizer-delta";

const CONVERSATION = `Here is a conversation between a user and an AI assistant, which may have used tools.

<conversation>
{% for message in messages %}[{{ message.role }}]
{{ message.content }}
{% if message.tool_calls %}{{ message.tool_calls | tojson }}
{% endif %}{% endfor %}</conversation>
{% if ground_truth %}
<reference>
{{ ground_truth }}
</reference>
{% endif %}
`;

export const defaultTemplates = {
  judge: `${CONVERSATION}Judge strictly how well the assistant did what the user asked for. Explain in a few sentences, then end with the line "Score: N", where N is a number from {{ min_score }} (useless) to {{ max_score }} (perfect).`,
  yes_no: `${CONVERSATION}Did the assistant do correctly what the user asked for? Answer with one word, {{ yes }} or {{ no }}.`,
};

/**
 * The prompt that asks a model for its judgement: a Jinja template of one user message. Its variables: `messages`
 * (the whole conversation), `question` (the user's last message of the prompt), `answer` (the sampled text),
 * `ground_truth`, `data_source`, `extra_info` (the row's), and `constants`.
 */
export class JudgePrompt {
  private readonly template: ChatTemplate;

  /**
   * @param subject name of the template in errors.
   * @throws ConfigError when the template does not parse, or cannot render a plain conversation.
   */
  constructor(
    source: string,
    private readonly constants: Record<string, unknown>,
    subject: string,
  ) {
    try {
      this.template = new ChatTemplate(source);
      this.render(sample);
    } catch (cause) {
      throw new ConfigError("is not a template that can be rendered", {
        code: "config/bad-template",
        subject,
        expected: "Jinja; variables: messages, question, answer, ground_truth, data_source, extra_info",
        received: (cause as Error).message.split("\n").at(-1)?.trim(),
        cause,
      });
    }
  }

  render({ dataSource, solutionText, groundTruth, extraInfo }: RewardRequest): ChatMessage[] {
    const { messages, images: _, ...info } = extraInfo;
    const content = this.template.render(nameImages(messages), {
      kwargs: {
        ...this.constants,
        question: findQuestion(messages),
        answer: solutionText,
        ground_truth:
          typeof groundTruth === "object" && groundTruth !== null ? JSON.stringify(groundTruth) : groundTruth,
        data_source: dataSource,
        extra_info: info,
      },
    });
    return [{ role: "user", content }];
  }
}

/** Replaces images by words, for a judge that reads only text: `[image 640 x 480, 3f2a9c01]`. */
export function nameImages(messages: readonly ChatMessage[]): ChatMessage[] {
  return messages.map((message) => ({ ...message, content: showContent(message.content) }));
}

/** The user's last message before the assistant first spoke. */
function findQuestion(messages: readonly ChatMessage[]): string {
  const answer = messages.findIndex((message) => message.role === "assistant");
  const prompt = answer < 0 ? messages : messages.slice(0, answer);
  return showContent(prompt.findLast((message) => message.role === "user")?.content ?? "");
}

const sample: RewardRequest = {
  dataSource: "sample",
  solutionText: "2",
  groundTruth: "2",
  extraInfo: {
    messages: [
      { role: "user", content: "1 + 1?" },
      { role: "assistant", content: "2" },
    ],
    numTurns: 2,
    finishReason: "stop",
    toolRewards: [],
    turnScores: [],
    interactionScore: null,
    toolScore: null,
  },
  responseLength: 1,
  uid: "sample",
  order: 0,
  place: "a sample",
};
