import type { ChatAnswer, ChatEvent, ChatToolCall } from "@cria/rollout";
import type { RequestError } from "../request-error.js";
import { writeOpenAiError } from "./openai-errors.js";
import type { AnswerContext, AnswerStream, ServerEvent } from "./protocol.js";
import type { ResponsesCall } from "./responses-request.js";
import { describeNode, listLogprobs, listPromptTokens, listTokens } from "./token-fields.js";

/** An item of a response's `output`. */
export interface OutputItem {
  type: "reasoning" | "message" | "function_call";
  id: string;
  status?: string;
  [key: string]: unknown;
}

/** The answer to `POST /v1/responses`. */
export function writeResponse(call: ResponsesCall, answer: ChatAnswer, context: AnswerContext) {
  return finishResponse(call, answer, listItems(call, answer, context), context);
}

function finishResponse(call: ResponsesCall, answer: ChatAnswer, output: OutputItem[], context: AnswerContext) {
  const { usage, finishReason } = answer;
  const isCut = finishReason === "length";
  return {
    ...writeHead(call, context, isCut ? "incomplete" : "completed"),
    incomplete_details: isCut ? { reason: "max_output_tokens" } : null,
    output,
    usage: {
      input_tokens: usage.promptTokens,
      input_tokens_details: { cached_tokens: usage.reusedTokens, cache_write_tokens: 0 },
      output_tokens: usage.completionTokens,
      output_tokens_details: { reasoning_tokens: usage.reasoningTokens },
      total_tokens: usage.promptTokens + usage.completionTokens,
    },
    ...listPromptTokens(answer, call.wishes),
    ...listTokens(answer, call.wishes),
    cria: describeNode(answer),
  };
}

function writeHead({ echo }: ResponsesCall, context: AnswerContext, status: string) {
  return {
    id: `resp_${context.id}`,
    object: "response",
    created_at: context.created,
    status,
    error: null as object | null,
    incomplete_details: null as object | null,
    model: context.model,
    system_fingerprint: context.fingerprint,
    output: [] as OutputItem[],
    parallel_tool_calls: true,
    reasoning: { effort: null, summary: null },
    truncation: "disabled",
    ...echo,
  };
}

function listItems(call: ResponsesCall, answer: ChatAnswer, context: AnswerContext): OutputItem[] {
  const { reasoning_content, content, tool_calls = [] } = answer.message;
  const items: OutputItem[] = [];
  const nextId = (prefix: string) => `${prefix}_${context.id}_${items.length}`;
  // Only the last item can be incomplete, and calls are always whole.
  const isCut = answer.finishReason === "length" && tool_calls.length === 0;
  if (reasoning_content) items.push(writeReasoning(nextId("rs"), reasoning_content, isCut && content === ""));
  if (content !== "" || (tool_calls.length === 0 && items.length === 0))
    items.push(writeMessage(nextId("msg"), content, listOutputLogprobs(call, answer, context), isCut));
  for (const each of tool_calls) items.push(writeCall(nextId("fc"), each));
  return items;
}

function writeReasoning(id: string, text: string, isCut: boolean): OutputItem {
  const content = [{ type: "reasoning_text", text }];
  return { type: "reasoning", id, summary: [], content, status: isCut ? "incomplete" : "completed" };
}

function writeMessage(id: string, text: string, logprobs: object[], isCut: boolean): OutputItem {
  const content = [{ type: "output_text", text, annotations: [], logprobs }];
  return { type: "message", id, status: isCut ? "incomplete" : "completed", role: "assistant", content };
}

/** Logprobs of the output; in this protocol every token has a list of bytes. */
function listOutputLogprobs({ wishes }: ResponsesCall, answer: ChatAnswer, context: AnswerContext): object[] {
  if (!wishes.logprobs) return [];
  const withBytes = <Entry extends { bytes: number[] | null }>(entry: Entry) => ({
    ...entry,
    bytes: entry.bytes ?? [],
  });
  return listLogprobs(answer, context).map((entry) => ({
    ...withBytes(entry),
    top_logprobs: entry.top_logprobs.map(withBytes),
  }));
}

function writeCall(id: string, { id: call_id, function: called }: ChatToolCall): OutputItem {
  return { type: "function_call", id, call_id, name: called.name, arguments: called.arguments, status: "completed" };
}

/** The events of a streamed response. Items come one after another; one of text or thoughts is open at a time. */
export class ResponsesStream implements AnswerStream {
  private number = 0;
  private readonly output: OutputItem[] = [];
  private open: { kind: "message" | "reasoning"; id: string; text: string } | null = null;

  constructor(
    private readonly call: ResponsesCall,
    private readonly context: AnswerContext,
    /** Gets the finished response, before the stream ends. */
    private readonly onResponse: (answer: ChatAnswer, response: { id: string; output: OutputItem[] }) => void = () =>
      undefined,
  ) {}

  begin(): ServerEvent[] {
    const response = writeHead(this.call, this.context, "in_progress");
    return [this.event("response.created", { response }), this.event("response.in_progress", { response })];
  }

  add(_choice: number, event: ChatEvent): ServerEvent[] {
    if (event.type === "tool_call") return [...this.close(), ...this.addCall(event.call)];
    const kind = event.type === "text" ? "message" : "reasoning";
    const opened = this.open?.kind === kind ? [] : [...this.close(), ...this.openItem(kind)];
    const open = this.open!;
    open.text += event.text;
    const more = kind === "message" ? { logprobs: [] } : {};
    return [...opened, this.event(`${nameText(kind)}.delta`, { ...this.place(open.id), delta: event.text, ...more })];
  }

  end([answer]: readonly ChatAnswer[]): ServerEvent[] {
    const { message } = answer!;
    const isEmpty = this.output.length === 0 && !this.open && !message.tool_calls;
    const logprobs = listOutputLogprobs(this.call, answer!, this.context);
    const isCut = answer!.finishReason === "length";
    const closed = [...(isEmpty ? this.openItem("message") : []), ...this.close(logprobs, isCut)];
    const spoken = this.output.findLast(({ type }) => type === "message");
    if (spoken) (spoken.content as { logprobs: object[] }[])[0]!.logprobs = logprobs;
    const response = finishResponse(this.call, answer!, this.output, this.context);
    this.onResponse(answer!, response);
    return [...closed, this.event(`response.${response.status}`, { response })];
  }

  fail(error: RequestError): ServerEvent[] {
    const { message } = error;
    const { error: details } = writeOpenAiError(error);
    const response = {
      ...writeHead(this.call, this.context, "failed"),
      output: this.output,
      error: { code: nameFailure(error.status), message },
    };
    return [this.event("error", { ...details, type: "error" }), this.event("response.failed", { response })];
  }

  private openItem(kind: "message" | "reasoning"): ServerEvent[] {
    const id = `${kind === "message" ? "msg" : "rs"}_${this.context.id}_${this.output.length}`;
    this.open = { kind, id, text: "" };
    const item =
      kind === "message"
        ? { type: kind, id, status: "in_progress", role: "assistant", content: [] }
        : { type: kind, id, summary: [], content: [], status: "in_progress" };
    return [
      this.event("response.output_item.added", { output_index: this.output.length, item }),
      this.event("response.content_part.added", { ...this.place(id), part: writePart(kind, "", []) }),
    ];
  }

  private close(logprobs: object[] = [], isCut = false): ServerEvent[] {
    if (!this.open) return [];
    const { kind, id, text } = this.open;
    this.open = null;
    const place = this.place(id);
    const item = kind === "message" ? writeMessage(id, text, logprobs, isCut) : writeReasoning(id, text, isCut);
    const events = [
      this.event(`${nameText(kind)}.done`, { ...place, text, ...(kind === "message" ? { logprobs } : {}) }),
      this.event("response.content_part.done", { ...place, part: writePart(kind, text, logprobs) }),
      this.event("response.output_item.done", { output_index: this.output.length, item }),
    ];
    this.output.push(item);
    return events;
  }

  private addCall(call: ChatToolCall): ServerEvent[] {
    const output_index = this.output.length;
    const item = writeCall(`fc_${this.context.id}_${output_index}`, call);
    this.output.push(item);
    const at = { item_id: item.id, output_index };
    const { name, arguments: text } = call.function;
    return [
      this.event("response.output_item.added", {
        output_index,
        item: { ...item, arguments: "", status: "in_progress" },
      }),
      this.event("response.function_call_arguments.delta", { ...at, delta: text }),
      this.event("response.function_call_arguments.done", { ...at, name, arguments: text }),
      this.event("response.output_item.done", { output_index, item }),
    ];
  }

  private place(id: string) {
    return { item_id: id, output_index: this.output.length, content_index: 0 };
  }

  private event(type: string, data: object): ServerEvent {
    return { event: type, data: { ...data, type, sequence_number: this.number++ } };
  }
}

/** One of the codes that clients know; the event before it has Cria's code. */
function nameFailure(status: number): string {
  if (status === 429) return "rate_limit_exceeded";
  return status < 500 ? "invalid_prompt" : "server_error";
}

const nameText = (kind: "message" | "reasoning") =>
  kind === "message" ? "response.output_text" : "response.reasoning_text";

function writePart(kind: "message" | "reasoning", text: string, logprobs: object[]) {
  return kind === "message"
    ? { type: "output_text", text, annotations: [], logprobs }
    : { type: "reasoning_text", text };
}
