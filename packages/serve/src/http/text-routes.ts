import type { Hono } from "hono";
import type { TextAnswer } from "../model/served-model.js";
import {
  type CompletionsCall,
  CompletionsStream,
  readCompletionsBody,
  writeCompletion,
} from "../protocol/openai-completions.js";
import type { Endpoint } from "./endpoint.js";
import { linkSignals } from "./link-signals.js";
import { receiveJson } from "./receive-json.js";
import type { RequestTrace } from "./request-trace.js";
import type { ServeEnv } from "./serve-env.js";
import { streamEvents } from "./stream-events.js";
import { TextPace } from "./text-pace.js";

/** `POST /v1/completions`: text in, text out; no session records it. */
export function addTextRoutes(app: Hono<ServeEnv>, endpoint: Endpoint): void {
  app.post("/v1/completions", async (c) => {
    const call = readCompletionsBody(await receiveJson(c, endpoint.limits.bodyBytes));
    const context = endpoint.makeContext();
    const trace = c.get("trace");
    const { sampling, maxTokens, stop } = call.requests[0]!;
    trace?.ask({ ...sampling, maxTokens, stopStrings: stop }, call.requests.length);
    if (!call.stream) {
      const answers = await completeAll(endpoint, call, { signal: c.req.raw.signal, trace });
      return c.json(writeCompletion(call, answers, context));
    }
    const writer = new CompletionsStream(call, context);
    return streamEvents<TextAnswer[]>({
      endpoint,
      parts: { begin: () => [], end: (answers) => writer.end(answers), fail: (error) => writer.fail(error) },
      work: async (send, signal) => {
        const pace = new TextPace(endpoint.limits.paceMs);
        const tell = (index: number, text: string) =>
          pace.add(String(index), text, (all) => send(() => writer.add(index, all)));
        const answer = () => completeAll(endpoint, call, { signal, trace, onText: tell }).finally(() => pace.flush());
        return trace ? trace.run(answer, signal) : answer();
      },
      signal: c.req.raw.signal,
      hangUp: () => c.env?.outgoing?.destroy(),
      onBegin: () => undefined,
    });
  });
}

interface CompleteOptions {
  /** Aborts when the client disconnects. */
  signal: AbortSignal;
  onText?: (index: number, text: string) => void;
  /** The span of the request; absent: it is not traced. */
  trace?: RequestTrace;
}

async function completeAll(
  endpoint: Endpoint,
  { requests }: CompletionsCall,
  { signal, onText, trace }: CompleteOptions,
): Promise<TextAnswer[]> {
  const { gate, model, metrics, limits } = endpoint;
  endpoint.checkOpen();
  gate.check(requests.length);
  const link = linkSignals(signal, endpoint.signal);
  const arrived = performance.now();
  const asked = requests.map((request, index) =>
    gate.run(async () => {
      const waitedMs = performance.now() - arrived;
      const maxTokens = Math.min(request.maxTokens, limits.answerTokens);
      const answer = await model.complete(
        { ...request, maxTokens },
        { signal: link.signal, onText: (text) => onText?.(index, text) },
      );
      metrics.countUsage(answer.usage);
      trace?.count(waitedMs, answer);
      return answer;
    }, link.signal),
  );
  try {
    const answers = await Promise.all(asked);
    trace?.answer(answers);
    return answers;
  } catch (error) {
    link.abort(error);
    await Promise.allSettled(asked);
    throw error;
  } finally {
    link.unlink();
  }
}
