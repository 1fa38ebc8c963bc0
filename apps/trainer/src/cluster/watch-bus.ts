import type { JobBus } from "@cria/cluster";
import { Screen, type ScreenInput, type ScreenOutput } from "../watch/screen.js";
import { type BusState, followBusState } from "./bus-state.js";
import { drawBus } from "./draw-bus.js";

export interface WatchBusOptions {
  /** Name of the bus, for people. */
  name: string;
  input: ScreenInput;
  output: ScreenOutput;
  signal: AbortSignal;
}

/** Shows the workers of a bus on the whole screen until the user types q. The terminal is restored in every case. */
export async function watchBusOnScreen(bus: JobBus, { name, input, output, signal }: WatchBusOptions): Promise<void> {
  const over = new AbortController();
  let state: BusState | undefined;
  const draw = () => {
    const { width, height } = screen.size;
    const lines = state ? drawBus(name, state, width) : [];
    const room = height - 1;
    const shown = lines.length > room ? [...lines.slice(0, room - 1), `… ${lines.length - room + 1} more`] : lines;
    screen.draw([...shown, ...Array<string>(room - shown.length).fill(""), "q quit"]);
  };
  const screen = new Screen(input, output, (key) => ["q", "\x03", "\x04"].includes(key) && over.abort(), draw);
  try {
    const onState = (now: BusState) => {
      state = now;
      draw();
    };
    await followBusState(bus, onState, AbortSignal.any([signal, over.signal]));
  } finally {
    screen.close();
  }
}
