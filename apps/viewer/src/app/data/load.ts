import { type Accessor, createEffect, createMemo, createSignal, on, onCleanup } from "solid-js";
import { getJson, RequestError } from "./request.js";

/** Something that is asked of the API. While it is asked again, what was there stays. */
export interface Load<T> {
  data: Accessor<T | undefined>;
  error: Accessor<RequestError | undefined>;
  loading: Accessor<boolean>;
  /** Asks again. */
  again: () => void;
}

/** Asks for what lies at an address, and again whenever the address changes. Null: nothing is asked. */
export function createLoad<T>(getAddress: Accessor<string | null>): Load<T> {
  // The place in the app changes more often than what is asked for.
  const address = createMemo(getAddress);
  const [data, setData] = createSignal<T>();
  const [error, setError] = createSignal<RequestError>();
  const [loading, setLoading] = createSignal(false);
  let running: AbortController | undefined;
  let isStale = false;

  const ask = async () => {
    running?.abort();
    running = undefined;
    isStale = false;
    const from = address();
    if (from === null) return;
    const controller = new AbortController();
    running = controller;
    setLoading(true);
    try {
      const answer = await getJson<T>(from, controller.signal);
      if (running !== controller) return;
      setData(() => answer);
      setError(undefined);
    } catch (problem) {
      if (running !== controller) return;
      setData(undefined);
      setError(problem instanceof RequestError ? problem : new RequestError(String(problem), null, 0));
    }
    running = undefined;
    setLoading(false);
    if (isStale) void ask();
  };
  /** What is asked already is waited for: news that come faster than answers must not keep them away. */
  const again = () => {
    if (running) isStale = true;
    else void ask();
  };
  createEffect(
    on(address, (now, before) => {
      // What belongs to another address is not shown as if it were this one's.
      if (before !== undefined && now?.split("?")[0] !== before?.split("?")[0]) setData(undefined);
      void ask();
    }),
  );
  onCleanup(() => {
    const last = running;
    running = undefined;
    last?.abort();
  });
  return { data, error, loading, again };
}
