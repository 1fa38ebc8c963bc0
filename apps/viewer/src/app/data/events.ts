import { createSignal, onCleanup } from "solid-js";
import type { ViewerEvent } from "../../api/index.js";
import { apiAddress, isStatic } from "./request.js";

type Listener = (event: ViewerEvent | { type: "reconnected" }) => void;

const listeners = new Set<Listener>();
const [connected, setConnected] = createSignal(true);

/** False while the server does not answer. */
export { connected };

/** Listens to the server until the page closes; the browser connects again by itself. */
export function connectEvents(): void {
  if (isStatic) return;
  let lost = false;
  const source = new EventSource(apiAddress(["events"]));
  source.onopen = () => {
    setConnected(true);
    if (lost) tell({ type: "reconnected" });
    lost = false;
  };
  source.onerror = () => {
    lost = true;
    setConnected(false);
    // After some errors the browser gives up.
    if (source.readyState === EventSource.CLOSED) setTimeout(connectEvents, 3000);
  };
  source.onmessage = ({ data }) => tell(JSON.parse(data as string) as ViewerEvent);
}

/**
 * Calls at most once in 400 ms when the server reports on this run (null: any run), and after a pause in the
 * connection.
 */
export function onChange(run: () => string | null, types: readonly ViewerEvent["type"][], call: () => void): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  onEvent((event) => {
    if (event.type !== "reconnected") {
      const about = event.type === "run" ? event.summary.id : event.run;
      if (!types.includes(event.type) || (run() !== null && about !== run())) return;
    }
    timer ??= setTimeout(() => {
      timer = undefined;
      call();
    }, 400);
  });
  onCleanup(() => clearTimeout(timer));
}

/** Calls for each event while the calling component exists. */
export function onEvent(listener: Listener): void {
  listeners.add(listener);
  onCleanup(() => listeners.delete(listener));
}

function tell(event: Parameters<Listener>[0]): void {
  for (const listener of [...listeners]) listener(event);
}
