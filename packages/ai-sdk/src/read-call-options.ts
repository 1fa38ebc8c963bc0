import type {
  LanguageModelV3CallOptions,
  LanguageModelV3FunctionTool,
  LanguageModelV3ToolChoice,
  SharedV3Warning,
} from "@ai-sdk/provider";
import type { JsonSchema, SamplingOptions, ToolSchema } from "@cria/core";
import type { ChatRequest, ChatSampling, ResponseFormat, ToolChoice } from "@cria/rollout";
import { readPrompt } from "./read-prompt.js";

/** Options of a call in `providerOptions: { cria: ... }`. */
export interface CriaCallOptions extends Pick<SamplingOptions, "minP">, Pick<ChatRequest, "role"> {
  /** Include the prompt's token ids in `providerMetadata.cria`. Default false. */
  promptTokenIds?: boolean;
}

export interface ReadCall {
  request: ChatRequest;
  own: CriaCallOptions;
  /** Parts of the call without an effect. */
  warnings: SharedV3Warning[];
}

/**
 * A call of the AI SDK as a request of the policy.
 * @throws UnsupportedFunctionalityError for files in its prompt.
 */
export function readCallOptions(options: LanguageModelV3CallOptions): ReadCall {
  const { maxOutputTokens, stopSequences, temperature, topP, topK, seed } = options;
  const warnings: SharedV3Warning[] = [];
  const own = readOwnOptions(options.providerOptions?.cria ?? {}, warnings);
  for (const feature of ["presencePenalty", "frequencyPenalty"] as const)
    if (options[feature]) warnings.push({ type: "unsupported", feature });
  const tools = readTools(options.tools ?? [], warnings);
  const sampling: ChatSampling = dropUndefined({ temperature, topP, topK, minP: own.minP, seed });
  const responseFormat = readFormat(options.responseFormat);
  const request: ChatRequest = {
    messages: readPrompt(options.prompt),
    ...(tools.length > 0 ? { tools } : {}),
    ...(options.toolChoice && tools.length > 0 ? { toolChoice: readToolChoice(options.toolChoice) } : {}),
    ...(responseFormat ? { responseFormat } : {}),
    ...(maxOutputTokens === undefined ? {} : { maxTokens: maxOutputTokens }),
    ...(stopSequences && stopSequences.length > 0 ? { stop: stopSequences } : {}),
    ...(Object.keys(sampling).length > 0 ? { sampling } : {}),
    ...(own.role === undefined ? {} : { role: own.role }),
  };
  return { request, own, warnings };
}

function readOwnOptions(given: Record<string, unknown>, warnings: SharedV3Warning[]): CriaCallOptions {
  const { minP, promptTokenIds, role, ...others } = given;
  for (const name of Object.keys(others))
    warnings.push({
      type: "unsupported",
      feature: `providerOptions.cria.${name}`,
      details: "known are minP, promptTokenIds and role",
    });
  return {
    minP: minP as number | undefined,
    promptTokenIds: promptTokenIds === true,
    role: role as string | undefined,
  };
}

function readTools(tools: NonNullable<LanguageModelV3CallOptions["tools"]>, warnings: SharedV3Warning[]): ToolSchema[] {
  return tools.flatMap((tool) => {
    if (tool.type === "function") return [readTool(tool)];
    warnings.push({ type: "unsupported", feature: `provider-defined tool ${tool.id}` });
    return [];
  });
}

function readTool({ name, description, inputSchema }: LanguageModelV3FunctionTool): ToolSchema {
  // `$schema` is useless to a model.
  const { $schema: _, ...parameters } = inputSchema as JsonSchema;
  return { type: "function", function: { name, ...(description === undefined ? {} : { description }), parameters } };
}

function readToolChoice(choice: LanguageModelV3ToolChoice): ToolChoice {
  return choice.type === "tool" ? { name: choice.toolName } : choice.type;
}

function readFormat(format: LanguageModelV3CallOptions["responseFormat"]): ResponseFormat | undefined {
  if (format?.type !== "json") return undefined;
  if (!format.schema) return { type: "json_object" };
  const { $schema: _, ...schema } = format.schema as JsonSchema;
  return { type: "json_schema", schema, ...(format.name === undefined ? {} : { name: format.name }) };
}

function dropUndefined<T extends object>(given: T): T {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as T;
}
