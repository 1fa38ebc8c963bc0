import { createEffect, createSignal, For, on, onCleanup, Show } from "solid-js";
import { createStore } from "solid-js/store";
import type { Alternatives, ForkEvent } from "../../api/index.js";
import { RequestError } from "../data/request.js";
import { formatNumber, formatPercent } from "../logic/format.js";
import { showControls } from "../logic/visible-text.js";
import { Problem } from "../ui/loaded.js";
import { Said } from "../ui/text.js";
import type { ModelClient } from "./model-client.js";

interface Fork {
  from: string;
  loading: boolean;
  parts: { role: string; text: string }[];
  end: Extract<ForkEvent, { type: "end" }> | null;
  error: RequestError | null;
}

/** Other likely tokens at a place, with probabilities, and the conversation's continuation from there. */
export function AlternativesPanel(props: { token: number; chosen: number; client: ModelClient }) {
  const [found, setFound] = createSignal<Alternatives>();
  const [error, setError] = createSignal<RequestError>();
  const [busy, setBusy] = createSignal(false);
  const [fork, setFork] = createStore<{ now: Fork | null }>({ now: null });
  let running = new AbortController();
  const stop = () => {
    running.abort();
    running = new AbortController();
  };
  createEffect(
    on(
      () => props.token,
      () => {
        stop();
        setFound(undefined);
        setError(undefined);
        setBusy(false);
        setFork("now", null);
      },
    ),
  );
  onCleanup(() => running.abort());

  const ask = async () => {
    const { signal } = running;
    setBusy(true);
    setError(undefined);
    try {
      const answer = await props.client.ask<Alternatives>("alternatives", { token: props.token, count: 10 }, signal);
      if (!signal.aborted) setFound(answer);
    } catch (problem) {
      if (!signal.aborted) setError(asRequestError(problem));
    }
    if (!signal.aborted) setBusy(false);
  };
  const goOn = async (replacement: number | undefined, from: string) => {
    stop();
    const { signal } = running;
    setFork("now", { from, loading: true, parts: [], end: null, error: null });
    try {
      for await (const event of props.client.stream<ForkEvent>({ token: props.token, replacement }, signal)) {
        if (signal.aborted) return;
        if (event.type === "text") addText(event.role, event.text);
        else if (event.type === "end") setFork("now", (now) => now && { ...now, loading: false, end: event });
        else if (event.type === "error") throw new RequestError(event.message, null, 0);
      }
    } catch (problem) {
      if (!signal.aborted) setFork("now", (now) => now && { ...now, error: asRequestError(problem) });
    }
    if (!signal.aborted) setFork("now", (now) => now && { ...now, loading: false });
  };
  const addText = (role: string, text: string) => {
    setFork("now", "parts", (parts) => {
      const last = parts.at(-1);
      return last?.role === role
        ? [...parts.slice(0, -1), { role, text: last.text + text }]
        : [...parts, { role, text }];
    });
  };

  return (
    <section class="alternatives" aria-label="Alternatives">
      <div class="row">
        <button type="button" class="primary" disabled={busy()} onClick={ask}>
          {busy() ? "Asking the model…" : "Alternatives"}
        </button>
        <button type="button" onClick={() => goOn(undefined, "sampled again")}>
          Fork here
        </button>
      </div>
      <Show when={props.client.asked()}>
        {(question) => (
          <div class="notice" role="alertdialog" aria-label="The run trains now">
            <p>{question()}</p>
            <div class="row">
              <button type="button" class="primary" onClick={() => props.client.answer(true)}>
                Use its model
              </button>
              <button type="button" onClick={() => props.client.answer(false)}>
                Leave it alone
              </button>
            </div>
          </div>
        )}
      </Show>
      <Show when={error()}>{(problem) => <Problem error={problem()} />}</Show>
      <Show when={found()}>
        {(answer) => (
          <ul class="choices">
            <For each={answer().choices}>
              {(choice) => (
                <li classList={{ taken: choice.id === props.chosen }}>
                  <code title={`token ${choice.id}`}>{quote(choice.text)}</code>
                  <progress
                    max="1"
                    value={Math.exp(choice.logprob)}
                    aria-label={`Probability of ${quote(choice.text)}`}
                  />
                  <span class="number">{formatPercent(Math.exp(choice.logprob))}</span>
                  <button
                    type="button"
                    class="plain"
                    aria-label={`Fork here with ${quote(choice.text)}`}
                    onClick={() => goOn(choice.id, quote(choice.text))}
                  >
                    Fork
                  </button>
                </li>
              )}
            </For>
          </ul>
        )}
      </Show>
      <Show when={fork.now}>
        {(now) => (
          <section class="fork" aria-label="Fork" aria-live="polite">
            <h3>
              Fork: <code>{now().from}</code>
              <Show when={now().loading}>
                {" "}
                <span class="pill accent">
                  <span class="light beating" />
                  {now().parts.length === 0 ? "loading" : "generating"}
                </span>
              </Show>
            </h3>
            <For each={now().parts}>
              {(part) => (
                <div>
                  <span class={`role ${part.role}`}>{part.role}</span>
                  <Said text={part.text} />
                </div>
              )}
            </For>
            <Show when={now().end}>
              {(end) => (
                <p>
                  <span class={`pill ${end().success === false ? "bad" : end().success ? "good" : ""}`}>
                    reward {formatNumber(end().reward)}
                  </span>{" "}
                  <span class="soft">
                    {end().finish}, {end().tokens} tokens
                  </span>
                </p>
              )}
            </Show>
            <Show when={now().error}>{(problem) => <Problem error={problem()} />}</Show>
          </section>
        )}
      </Show>
    </section>
  );
}

function quote(text: string): string {
  return showControls(text).replaceAll("\n", "⏎").replaceAll("\t", "⇥").replaceAll(" ", "␣");
}

function asRequestError(problem: unknown): RequestError {
  return problem instanceof RequestError ? problem : new RequestError(String(problem), null, 0);
}
