import { type ChatMessage, ConfigError } from "@cria/core";
import { z } from "zod";
import { InstanceStore } from "../instance-store.js";
import { BaseInteraction, type InteractionReply, type ReplyKwargs, type StartKwargs } from "./base-interaction.js";
import { type ChatModel, EndpointChatModel } from "./chat-model.js";
import { readConfig } from "./read-config.js";

const configSchema = z.looseObject({
  /** Name of the user's model at the endpoint. */
  user_model: z.string().default("default"),
  /** OpenAI-compatible, up to /v1. */
  base_url: z.url().optional(),
  /** Environment variable that holds the endpoint's key. */
  api_key_env: z.string().default("OPENAI_API_KEY"),
  num_retries: z.int().min(0).default(3),
  retry_delay_s: z.number().min(0).default(0.5),
  max_tokens: z.int().positive().default(512),
  temperature: z.number().min(0).default(1),
  /** System prompt of the user's model. `{goal}` stands for the row's goal. */
  system_prompt: z
    .string()
    .default(
      "You play a user who talks to an assistant. Your goal: {goal}\nWrite the user's next message, nothing else. " +
        "When your goal is reached, write only {done}. When the assistant cannot help, write only {gave_up}.",
    ),
  done_mark: z.string().min(1).default("[DONE]"),
  gave_up_mark: z.string().min(1).default("[GIVE UP]"),
  max_user_messages: z.int().positive().default(8),
});

interface Instance {
  goal: string;
  messages: number;
  satisfied: boolean;
}

/**
 * A user played by a second model: a `model` given in code, or an OpenAI-compatible endpoint. It sees the conversation
 * from the user's side and says when its goal (`interaction_kwargs.goal`, else `query`, else the ground truth) is
 * reached. Calculated score: 1 when it was, else 0.
 */
export class SimulatedUserInteraction extends BaseInteraction {
  private readonly instances: InstanceStore<Instance>;
  private readonly settings: z.infer<typeof configSchema>;
  private readonly model: ChatModel;

  /** @param config with `base_url`, or a `model` that answers conversations. */
  constructor(config: Record<string, unknown> = {}, name = "simulated_user") {
    super(config, name);
    const { model, ...rest } = config;
    this.settings = readConfig(configSchema, rest, name);
    this.instances = new InstanceStore(name);
    this.model = (model as ChatModel | undefined) ?? this.connect();
  }

  async startInteraction(instanceId: string, kwargs: StartKwargs = {}): Promise<void> {
    const goal = String(kwargs.goal ?? kwargs.query ?? kwargs.ground_truth ?? "");
    this.instances.start(instanceId, { goal, messages: 0, satisfied: false });
  }

  async generateResponse(
    instanceId: string,
    messages: readonly ChatMessage[],
    kwargs: ReplyKwargs = {},
  ): Promise<InteractionReply> {
    const instance = this.instances.get(instanceId);
    const { temperature, max_tokens, done_mark, gave_up_mark, max_user_messages } = this.settings;
    const text = await this.model.answer(this.takeUserSide(instance, messages), {
      temperature,
      maxTokens: max_tokens,
      seed: kwargs.seed,
      signal: kwargs.signal,
    });
    const content = text.trim();
    instance.satisfied = content.includes(done_mark);
    const ended = instance.satisfied || content.includes(gave_up_mark) || ++instance.messages > max_user_messages;
    return { shouldTerminate: ended, content, score: 0, data: { satisfied: instance.satisfied ? 1 : 0 } };
  }

  override async calculateScore(instanceId: string): Promise<number> {
    return this.instances.get(instanceId).satisfied ? 1 : 0;
  }

  async finalizeInteraction(instanceId: string): Promise<void> {
    this.instances.end(instanceId);
  }

  /**
   * Swaps the roles: the assistant's messages are user text for this model, and the other way round. Tools are left
   * out.
   */
  private takeUserSide({ goal }: Instance, messages: readonly ChatMessage[]): ChatMessage[] {
    const { system_prompt, done_mark, gave_up_mark } = this.settings;
    const system = system_prompt
      .replaceAll("{goal}", () => goal)
      .replaceAll("{done}", () => done_mark)
      .replaceAll("{gave_up}", () => gave_up_mark);
    const turned: ChatMessage[] = [{ role: "system", content: system }];
    for (const { role, content } of messages) {
      if (role !== "user" && role !== "assistant") continue;
      const other = role === "user" ? "assistant" : "user";
      const last = turned.at(-1)!;
      // The assistant speaks twice in a row when a tool answered in between, but templates want alternating turns.
      if (last.role === other) last.content += `\n${content}`;
      else turned.push({ role: other, content });
    }
    return turned;
  }

  private connect(): ChatModel {
    const { base_url, user_model, api_key_env, num_retries, retry_delay_s } = this.settings;
    if (base_url === undefined) {
      throw new ConfigError("has no model to play the user", {
        code: "config/bad-value",
        subject: `config of ${this.name}`,
        expected: "base_url of an OpenAI-compatible endpoint, or in code a model",
        received: "neither",
      });
    }
    return new EndpointChatModel({
      baseUrl: base_url,
      model: user_model,
      apiKey: process.env[api_key_env],
      retries: num_retries,
      retryDelayS: retry_delay_s,
    });
  }
}
