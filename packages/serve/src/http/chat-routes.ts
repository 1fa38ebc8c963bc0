import type { ChatAnswer, ChatEvent } from "@cria/rollout";
import type { Context, Hono } from "hono";
import { routePath } from "hono/route";
import type { SessionRecord } from "../model/sessions.js";
import { anthropicMessages } from "../protocol/anthropic.js";
import { readMessagesBody } from "../protocol/anthropic-request.js";
import { openAiChat } from "../protocol/openai-chat.js";
import type { AnswerContext, AnswerStream, ChatCall, Protocol } from "../protocol/protocol.js";
import { type OutputItem, ResponsesStream, writeResponse } from "../protocol/responses.js";
import { type ResponsesCall, readResponsesBody } from "../protocol/responses-request.js";
import { type AskOptions, askModel } from "./answer-chat.js";
import type { Endpoint } from "./endpoint.js";
import { loadImages } from "./load-images.js";
import { receiveJson } from "./receive-json.js";
import type { ServeEnv } from "./serve-env.js";
import { streamEvents } from "./stream-events.js";
import { TextPace } from "./text-pace.js";

type Serving = Context<ServeEnv>;

/** The protocol's part in answering one call. */
interface Exchange<Call extends ChatCall> {
  call: Call;
  record: SessionRecord;
  answer: (answers: readonly ChatAnswer[], context: AnswerContext) => object;
  stream: (context: AnswerContext) => AnswerStream;
}

/** Conversations, in each protocol. */
export function addChatRoutes(app: Hono<ServeEnv>, endpoint: Endpoint): void {
  const receive = (c: Serving) => receiveJson(c, endpoint.limits.bodyBytes);
  const addProtocol = <Call extends ChatCall>(path: string, protocol: Protocol<Call>) =>
    app.post(path, async (c) => {
      const call = protocol.read(await receive(c));
      await loadImages(call, endpoint);
      return respond(c, endpoint, {
        call,
        record: findRecord(c, endpoint),
        answer: (answers, context) => protocol.answer(call, answers, context),
        stream: (context) => protocol.stream(call, context),
      });
    });
  addProtocol("/v1/chat/completions", openAiChat);
  addProtocol("/v1/messages", anthropicMessages);
  app.post("/v1/messages/count_tokens", async (c) => {
    const call = readMessagesBody(await receive(c));
    await loadImages(call, endpoint);
    return c.json({ input_tokens: await endpoint.model.countTokens(call.request) });
  });
  app.post("/v1/responses", async (c) => {
    const body = await receive(c);
    const record = findRecord(c, endpoint);
    const call = readResponsesBody(body, record.responses);
    await loadImages(call, endpoint);
    return respond(c, endpoint, makeResponsesExchange(call, record));
  });
}

function findRecord(c: Serving, { sessions }: Endpoint): SessionRecord {
  const id = c.get("session");
  return id === null ? sessions.anonymous : sessions.use(id);
}

function makeResponsesExchange(call: ResponsesCall, record: SessionRecord): Exchange<ResponsesCall> {
  // Responses that the client asked not to store are remembered too, so that agents may continue them.
  const remember = (answer: ChatAnswer, { id, output }: { id: string; output: readonly OutputItem[] }) =>
    record.responses.remember(id, [...call.history, answer.message], output);
  return {
    call,
    record,
    answer: ([answer], context) => {
      const response = writeResponse(call, answer!, context);
      remember(answer!, response);
      return response;
    },
    stream: (context) => new ResponsesStream(call, context, remember),
  };
}

async function respond<Call extends ChatCall>(
  c: Serving,
  endpoint: Endpoint,
  { call, record, answer, stream }: Exchange<Call>,
): Promise<Response> {
  const started = performance.now();
  const route = routePath(c, -1);
  const seconds = () => (performance.now() - started) / 1000;
  const context = endpoint.makeContext();
  const trace = c.get("trace");
  const { sampling, maxTokens, stop } = call.request;
  trace?.ask({ ...sampling, maxTokens, stopStrings: stop }, call.n);
  const isRetry = Number(c.req.header("x-stainless-retry-count") ?? 0) > 0;
  const ask = async (options: Pick<AskOptions, "signal" | "onEvent">) => {
    const answers = await askModel(endpoint, { call, record, isRetry, trace, ...options });
    trace?.answer(answers);
    watchDelivery(c, () => record.retries.markDelivered(answers));
    endpoint.metrics.countAnswer(route, seconds());
    return answers;
  };
  if (!call.stream) {
    const answers = await ask({ signal: c.req.raw.signal, onEvent: () => undefined });
    return c.json(answer(answers, context));
  }
  const writer = stream(context);
  return streamEvents<readonly ChatAnswer[]>({
    endpoint,
    parts: {
      begin: () => writer.begin(),
      end: (answers) => writer.end(answers),
      fail: (error) => writer.fail(error),
    },
    work: async (send, signal) => {
      const pace = new TextPace(endpoint.limits.paceMs);
      const tell = (choice: number, event: ChatEvent) => send(() => writer.add(choice, event));
      const onEvent = (choice: number, event: ChatEvent) => {
        if (event.type === "tool_call") {
          pace.flush();
          tell(choice, event);
        } else pace.add(`${choice} ${event.type}`, event.text, (text) => tell(choice, { ...event, text }));
      };
      const answer = () => ask({ signal, onEvent }).finally(() => pace.flush());
      return trace ? trace.run(answer, signal) : answer();
    },
    signal: c.req.raw.signal,
    hangUp: () => c.env?.outgoing?.destroy(),
    onBegin: () => endpoint.metrics.countFirstEvent(route, seconds()),
  });
}

/** Calls back when the whole response was handed to the network, or at once without a server. */
function watchDelivery(c: Serving, onDelivered: () => void): void {
  const { outgoing } = c.env ?? {};
  if (outgoing) outgoing.once("finish", onDelivered);
  else onDelivered();
}
