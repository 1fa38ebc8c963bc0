import type { ChatAnswer, ChatEvent } from "@cria/rollout";
import { listEvents, nameCall } from "../model/retry-memory.js";
import type { SessionRecord } from "../model/sessions.js";
import type { ChatCall } from "../protocol/protocol.js";
import type { Endpoint } from "./endpoint.js";
import { linkSignals } from "./link-signals.js";
import type { RequestTrace } from "./request-trace.js";

export interface AskOptions {
  call: ChatCall;
  record: SessionRecord;
  /** Aborts when the client disconnects. */
  signal: AbortSignal;
  onEvent: (choice: number, event: ChatEvent) => void;
  /** The span of the request; absent: it is not traced. */
  trace?: RequestTrace;
  /** True if the client marks its request as a retry. */
  isRetry: boolean;
}

/**
 * All answers that a call asks for. Each waits for its turn at the gate; they run together as far as there is room.
 * When one fails, the others are aborted.
 * @throws the first failure, once nothing of the call runs any more.
 */
export async function askModel(endpoint: Endpoint, options: AskOptions): Promise<readonly ChatAnswer[]> {
  const { call, record, isRetry, onEvent } = options;
  const key = nameCall(call);
  const known = isRetry ? record.retries.find(key) : undefined;
  if (known) {
    known.forEach((answer, choice) => {
      for (const event of listEvents(answer)) onEvent(choice, event);
    });
    return known;
  }
  record.retries.forgetDelivered(key);
  const answers = await askAnew(endpoint, options);
  record.retries.keep(key, answers);
  return answers;
}

async function askAnew(
  endpoint: Endpoint,
  { call, record, signal, onEvent, isRetry, trace }: AskOptions,
): Promise<ChatAnswer[]> {
  const { gate, metrics, limits } = endpoint;
  endpoint.checkOpen();
  gate.check(call.n);
  const link = linkSignals(signal, record.controller.signal, endpoint.signal);
  record.running++;
  const arrived = performance.now();
  try {
    const asked = Array.from({ length: call.n }, (_, choice) =>
      gate.run(async () => {
        const waitedMs = performance.now() - arrived;
        const request = makeRequest(call, choice, limits.answerTokens);
        const answer = await record.session.complete(request, {
          signal: link.signal,
          onEvent: (event) => onEvent(choice, event),
          separate: !isRetry,
        });
        record.tokens += answer.usage.promptTokens + answer.usage.completionTokens;
        metrics.countUsage(answer.usage);
        trace?.count(waitedMs, answer);
        return answer;
      }, link.signal),
    );
    return await Promise.all(asked).catch(async (error: unknown) => {
      link.abort(error);
      await Promise.allSettled(asked);
      throw error;
    });
  } finally {
    link.unlink();
    record.running--;
  }
}

/** The request of one choice. The first choice equals a request for one answer. */
function makeRequest({ request, n }: ChatCall, choice: number, mostTokens: number): ChatCall["request"] {
  const { maxTokens } = request;
  const limited = maxTokens === undefined && mostTokens === Number.MAX_SAFE_INTEGER ? undefined : mostTokens;
  return {
    ...request,
    maxTokens: limited === undefined ? undefined : Math.min(maxTokens ?? limited, limited),
    ...(n > 1 && choice > 0 ? { choice } : {}),
  };
}
