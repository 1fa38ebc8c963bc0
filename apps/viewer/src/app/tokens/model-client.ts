import { createSignal } from "solid-js";
import { postForLines, postJson, RequestError } from "../data/request.js";

/** Questions to the run's model about one conversation; asks the user before it uses a live run's. */
export interface ModelClient {
  /** A question for the user to confirm, since the run is training. */
  asked: () => string | null;
  answer: (yes: boolean) => void;
  ask: <T>(what: "alternatives" | "now", body: object, signal?: AbortSignal) => Promise<T>;
  stream: <T>(body: object, signal?: AbortSignal) => AsyncGenerator<T>;
}

/** @param address of `alternatives`, `now` or `fork`. */
export function createModelClient(address: (what: string) => string): ModelClient {
  const [asked, setAsked] = createSignal<string | null>(null);
  let decide: ((yes: boolean) => void) | undefined;
  let allowed = false;

  /** An earlier question counts as refused. */
  const confirm = (question: string) =>
    new Promise<boolean>((resolve) => {
      decide?.(false);
      decide = resolve;
      setAsked(question);
    });
  const withConsent = (body: object) => (allowed ? { ...body, confirm: true } : body);
  const consentTo = async (problem: unknown) => {
    if (!(problem instanceof RequestError && problem.needsConfirm) || allowed) throw problem;
    if (!(await confirm(problem.message))) throw new RequestError("Not asked: the run trains now", null, 0);
    allowed = true;
  };
  return {
    asked,
    answer: (yes) => {
      setAsked(null);
      decide?.(yes);
      decide = undefined;
    },
    ask: async <T>(what: "alternatives" | "now", body: object, signal?: AbortSignal) => {
      try {
        return await postJson<T>(address(what), withConsent(body), signal);
      } catch (problem) {
        await consentTo(problem);
        return postJson<T>(address(what), withConsent(body), signal);
      }
    },
    stream: async function* <T>(body: object, signal?: AbortSignal) {
      try {
        yield* postForLines<T>(address("fork"), withConsent(body), signal);
      } catch (problem) {
        await consentTo(problem);
        yield* postForLines<T>(address("fork"), withConsent(body), signal);
      }
    },
  };
}
