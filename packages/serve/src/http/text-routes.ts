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
import type { ServeEnv } from "./serve-env.js";
import { streamEvents } from "./stream-events.js";
import { TextPace } from "./text-pace.js";

/** `POST /v1/completions`: text in, text out; no session records it. */
export function addTextRoutes(app: Hono<ServeEnv>, endpoint: Endpoint): void {
  app.post("/v1/completions", async (c) => {
    const call = readCompletionsBody(await receiveJson(c, endpoint.limits.bodyBytes));
    const context = endpoint.makeContext();
    if (!call.stream) {
      const answers = await completeAll(endpoint, call, c.req.raw.signal, () => undefined);
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
        return completeAll(endpoint, call, signal, tell).finally(() => pace.flush());
      },
      signal: c.req.raw.signal,
      hangUp: () => c.env?.outgoing?.destroy(),
      onBegin: () => undefined,
    });
  });
}

async function completeAll(
  endpoint: Endpoint,
  { requests }: CompletionsCall,
  signal: AbortSignal,
  onText: (index: number, text: string) => void,
): Promise<TextAnswer[]> {
  const { gate, model, metrics, limits } = endpoint;
  endpoint.checkOpen();
  gate.check(requests.length);
  const link = linkSignals(signal, endpoint.signal);
  const asked = requests.map((request, index) =>
    gate.run(async () => {
      const maxTokens = Math.min(request.maxTokens, limits.answerTokens);
      const answer = await model.complete(
        { ...request, maxTokens },
        { signal: link.signal, onText: (text) => onText(index, text) },
      );
      metrics.countUsage(answer.usage);
      return answer;
    }, link.signal),
  );
  try {
    return await Promise.all(asked);
  } catch (error) {
    link.abort(error);
    await Promise.allSettled(asked);
    throw error;
  } finally {
    link.unlink();
  }
}
