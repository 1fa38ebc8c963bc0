import type { TokenCandidate } from "@cria/core";
import { z } from "zod";
import type { TextAnswer, TextRequest } from "../model/served-model.js";
import type { RequestError } from "../request-error.js";
import { refuseField } from "../request-error.js";
import { writeOpenAiError } from "./openai-errors.js";
import type { AnswerContext, ServerEvent, TokenWishes } from "./protocol.js";
import { readFields } from "./read-fields.js";
import { MOST_CHOICES, readSampling, readStop, samplingFields, stopField, topLogprobsField } from "./shared-fields.js";

/** Most prompts of one request. */
const MOST_PROMPTS = 256;
/** The API's default. */
const DEFAULT_MAX_TOKENS = 16;

const tokensSchema = z
  .array(
    z
      .number()
      .int()
      .min(0)
      .max(2 ** 31 - 1),
  )
  .min(1);
const bodySchema = z.object({
  prompt: z.union([
    z.string(),
    tokensSchema,
    z.array(z.string()).min(1).max(MOST_PROMPTS),
    z.array(tokensSchema).min(1).max(MOST_PROMPTS),
  ]),
  suffix: z.string().nullish(),
  echo: z.boolean().nullish(),
  max_tokens: z.number().int().min(1).nullish(),
  stop: stopField,
  n: z.number().int().min(1).max(MOST_CHOICES).nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.object({ include_usage: z.boolean().nullish() }).nullish(),
  logprobs: z.union([topLogprobsField, z.boolean()]),
  return_token_ids: z.boolean().nullish(),
  ...samplingFields,
});

/** A body of `POST /v1/completions`: `n` answers to each prompt, the prompts in order. */
export interface CompletionsCall {
  requests: TextRequest[];
  stream: boolean;
  includeUsage: boolean;
  wishes: TokenWishes;
}

/** @throws RequestError 400 with the name of the wrong field. */
export function readCompletionsBody(body: unknown): CompletionsCall {
  const given = readFields(bodySchema, body);
  if (given.suffix) throw refuseField("suffix", "none: a completion only continues its prompt", "a text");
  if (given.echo) throw refuseField("echo", "false: an answer has only sampled text", "true");
  const { prompt } = given;
  const prompts: TextRequest["prompt"][] =
    typeof prompt === "string" || typeof prompt[0] === "number"
      ? [prompt as string | number[]]
      : (prompt as string[] | number[][]);
  const n = given.n ?? 1;
  const sampling = readSampling(given) ?? {};
  const requests = prompts.flatMap((each) =>
    Array.from({ length: n }, (_, sibling) => ({
      prompt: each,
      maxTokens: given.max_tokens ?? DEFAULT_MAX_TOKENS,
      stop: readStop(given.stop),
      sampling,
      topLogprobs: typeof given.logprobs === "number" ? given.logprobs : 0,
      sibling,
    })),
  );
  if (requests.length > MOST_PROMPTS)
    throw refuseField("prompt", `at most ${MOST_PROMPTS} answers in all`, `${prompts.length} prompts, n ${n}`);
  return {
    requests,
    stream: given.stream === true,
    includeUsage: given.stream_options?.include_usage === true,
    wishes: {
      ids: given.return_token_ids === true,
      logprobs: given.logprobs !== null && given.logprobs !== undefined && given.logprobs !== false,
    },
  };
}

export function writeCompletion(call: CompletionsCall, answers: readonly TextAnswer[], context: AnswerContext) {
  return {
    ...writeHead(context),
    choices: answers.map((answer, index) => ({
      index,
      text: answer.text,
      ...writeEnd(call.wishes, answer, context),
      ...(call.wishes.ids ? { prompt_token_ids: [...answer.promptTokenIds] } : {}),
    })),
    usage: writeUsage(answers),
  };
}

/** Writes a streamed answer. */
export class CompletionsStream {
  constructor(
    private readonly call: CompletionsCall,
    private readonly context: AnswerContext,
  ) {}

  add(index: number, text: string): ServerEvent[] {
    return [this.chunk([{ index, text, logprobs: null, finish_reason: null }])];
  }

  end(answers: readonly TextAnswer[]): ServerEvent[] {
    const { wishes, includeUsage } = this.call;
    const last = answers.map((answer, index) =>
      this.chunk([
        {
          index,
          text: "",
          ...writeEnd(wishes, answer, this.context),
          ...(wishes.ids ? { prompt_token_ids: [...answer.promptTokenIds] } : {}),
        },
      ]),
    );
    const usage = includeUsage ? [this.chunk([], { usage: writeUsage(answers) })] : [];
    return [...last, ...usage, { data: "[DONE]" }];
  }

  fail(error: RequestError): ServerEvent[] {
    return [{ data: writeOpenAiError(error) }, { data: "[DONE]" }];
  }

  private chunk(choices: object[], more: object = {}): ServerEvent {
    const usage = this.call.includeUsage ? { usage: null } : {};
    return { data: { ...writeHead(this.context), choices, ...usage, ...more } };
  }
}

function writeHead({ id, created, model, fingerprint }: AnswerContext) {
  return { id: `cmpl-${id}`, object: "text_completion", created, model, system_fingerprint: fingerprint };
}

function writeEnd(wishes: TokenWishes, answer: TextAnswer, context: AnswerContext) {
  return {
    logprobs: wishes.logprobs ? writeLogprobs(answer, context) : null,
    finish_reason: answer.finishReason,
    ...(wishes.ids ? { token_ids: [...answer.tokenIds] } : {}),
  };
}

function writeLogprobs(answer: TextAnswer, context: AnswerContext) {
  const tokens = context.spell(answer.tokenIds).map(({ text }) => text);
  let at = 0;
  const text_offset = tokens.map((text) => {
    const offset = at;
    at += text.length;
    return offset;
  });
  const top_logprobs = answer.topLogprobs?.map((candidates, i) =>
    nameCandidates([{ id: answer.tokenIds[i]!, logprob: answer.logprobs[i]! }, ...candidates], context),
  );
  return { tokens, token_logprobs: [...answer.logprobs], top_logprobs: top_logprobs ?? null, text_offset };
}

/**
 * Logprobs by text, the sampled token's among them. Of tokens with the same text (parts of characters) the likeliest
 * counts.
 */
function nameCandidates(candidates: readonly TokenCandidate[], context: AnswerContext): Record<string, number> {
  const spelled = context.spell(candidates.map(({ id }) => id));
  const named = new Map<string, number>();
  candidates.forEach(({ logprob }, i) => {
    const { text } = spelled[i]!;
    named.set(text, Math.max(logprob, named.get(text) ?? Number.NEGATIVE_INFINITY));
  });
  return Object.fromEntries(named);
}

function writeUsage(answers: readonly TextAnswer[]) {
  const sum = (count: (answer: TextAnswer) => number) => answers.reduce((total, answer) => total + count(answer), 0);
  const prompt = sum(({ usage, sibling }) => (sibling === 0 ? usage.promptTokens : 0));
  const completion = sum(({ usage }) => usage.completionTokens);
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: sum(({ usage, sibling }) => (sibling === 0 ? usage.reusedTokens : 0)) },
  };
}
