import { type Accessor, createEffect, createMemo, createSignal, on, onCleanup } from "solid-js";
import { getJson, RequestError } from "./request.js";

/** Data of the API. During a reload the old data stays. */
export interface Load<T> {
  data: Accessor<T | undefined>;
  error: Accessor<RequestError | undefined>;
  loading: Accessor<boolean>;
  /** Reloads. */
  again: () => void;
}

/** Loads the data at an address, and again whenever the address changes. Null: loads nothing. */
export function createLoad<T>(getAddress: Accessor<string | null>): Load<T> {
  // The place in the app changes more often than the address.
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
  /** A running request is finished first: events that come faster than answers must not keep these away. */
  const again = () => {
    if (running) isStale = true;
    else void ask();
  };
  createEffect(
    on(address, (now, before) => {
      // Data of another address is not shown as this one's.
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
