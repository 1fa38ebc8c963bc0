import { type ChatMessage, findLastAnswer } from "@cria/core";
import { z } from "zod";
import { InstanceStore } from "../instance-store.js";
import { BaseInteraction, type InteractionReply, type StartKwargs } from "./base-interaction.js";
import { readConfig } from "./read-config.js";

const configSchema = z.looseObject({
  /** Hints before the conversation ends. */
  max_hints: z.int().min(0).default(2),
  /** Score of a turn that needed a hint. */
  hint_penalty: z.number().default(0),
});

interface Instance {
  groundTruth: number;
  hints: number;
  lastAnswer: number | null;
  solved: boolean;
}

/**
 * Judges the number at the end of an answer to a GSM8K problem ("#### 72", or the last number). Hints name the mistake
 * without giving the solution away. Calculated score: 1 when solved, else 0. It is built in, and no part of the example,
 * because verl's scripts name it by their own path.
 */
export class Gsm8kInteraction extends BaseInteraction {
  private readonly instances: InstanceStore<Instance>;
  private readonly settings: z.infer<typeof configSchema>;

  constructor(config: Record<string, unknown> = {}, name = "gsm8k") {
    super(config, name);
    this.settings = readConfig(configSchema, config, name);
    this.instances = new InstanceStore(name);
  }

  async startInteraction(instanceId: string, kwargs: StartKwargs = {}): Promise<void> {
    this.instances.start(instanceId, {
      groundTruth: parseAnswer(String(kwargs.ground_truth ?? "")) ?? Number.NaN,
      hints: 0,
      lastAnswer: null,
      solved: false,
    });
  }

  async generateResponse(instanceId: string, messages: readonly ChatMessage[]): Promise<InteractionReply> {
    const instance = this.instances.get(instanceId);
    const text = findLastAnswer(messages);
    const answer = parseAnswer(text);
    if (answer !== null && answer === instance.groundTruth) {
      instance.solved = true;
      return { shouldTerminate: true, content: "Your answer is correct.", score: 1, data: { solved: 1 } };
    }
    if (instance.hints >= this.settings.max_hints) {
      return { shouldTerminate: true, content: "Your answer is incorrect.", score: 0, data: { solved: 0 } };
    }
    const content = `Your answer is incorrect. ${makeHint(answer, instance)}`;
    instance.hints++;
    instance.lastAnswer = answer;
    return { shouldTerminate: false, content, score: this.settings.hint_penalty, data: { hints: 1 } };
  }

  override async calculateScore(instanceId: string): Promise<number> {
    return this.instances.get(instanceId).solved ? 1 : 0;
  }

  async finalizeInteraction(instanceId: string): Promise<void> {
    this.instances.end(instanceId);
  }
}

/** The number after the last "####", else the last number of the text; null when there is none. */
function parseAnswer(text: string): number | null {
  const marked = text.lastIndexOf("####");
  const numbers = (marked >= 0 ? text.slice(marked) : text).match(/-?\d[\d,]*(?:\.\d+)?/g);
  const found = marked >= 0 ? numbers?.[0] : numbers?.at(-1);
  return found === undefined ? null : Number(found.replaceAll(",", ""));
}

/** The more the answer shows, the more specific the hint. */
function makeHint(answer: number | null, { groundTruth, lastAnswer }: Instance): string {
  if (answer === null) return "Hint: end with #### and the number.";
  if (answer === lastAnswer) return "Hint: you gave this answer before. Read the problem again, step by step.";
  if (answer === -groundTruth) return "Hint: check the sign.";
  if (groundTruth !== 0 && isPowerOfTen(Math.abs(answer / groundTruth))) return "Hint: check the units and decimals.";
  if (Math.abs(answer - groundTruth) <= 0.1 * Math.abs(groundTruth))
    return "Hint: you are close. Check the arithmetic.";
  return "Hint: work through the steps one at a time and compute again.";
}

function isPowerOfTen(ratio: number): boolean {
  const exponent = Math.log10(ratio);
  return Math.abs(exponent - Math.round(exponent)) < 1e-9;
}
