import type { ConversationStates } from "./conversation-states.js";
import { divideStep, type RolloutActivity, type StepTimes } from "./step-times.js";

export interface StopwatchOptions {
  /** Called with the name of each piece of work as it begins. */
  onWork?: (name: string) => void;
  /** States of the conversations that the step waits for: they divide the time of `gen`. Default: it is not divided. */
  conversations?: Pick<ConversationStates, "onChange"> & { activity: () => RolloutActivity };
  /** Clock, in milliseconds. */
  now?: () => number;
}

/** Seconds spent by name. */
export class Stopwatch {
  private readonly options: StopwatchOptions;
  private readonly now: () => number;
  private readonly started: number;
  private readonly spent: Record<string, number> = {};
  private readonly activities: Record<RolloutActivity, number> = {
    decoding: 0,
    waiting_for_tools: 0,
    waiting_for_groups: 0,
  };

  constructor(options: StopwatchOptions = {}) {
    this.options = options;
    this.now = options.now ?? (() => performance.now());
    this.started = this.now();
  }

  async time<T>(name: string, work: () => Promise<T>): Promise<T> {
    this.options.onWork?.(name);
    const start = this.now();
    const end = name === "gen" ? this.divide() : undefined;
    try {
      return await work();
    } finally {
      end?.();
      this.add(name, start);
    }
  }

  timeSync<T>(name: string, work: () => T): T {
    this.options.onWork?.(name);
    const start = this.now();
    const result = work();
    this.add(name, start);
    return result;
  }

  /** Seconds by name; `step`: since the beginning. */
  seconds(): Record<string, number> {
    return { ...this.spent, step: (this.now() - this.started) / 1000 };
  }

  /** Divides `seconds` of this clock, `step`, into exclusive parts that add up to it. */
  divideStep(seconds: Readonly<Record<string, number>>): StepTimes {
    return divideStep(seconds, this.activities);
  }

  private add(name: string, start: number): void {
    this.spent[name] = (this.spent[name] ?? 0) + (this.now() - start) / 1000;
  }

  /** Adds the time from now on to what the conversations do, until the returned function is called. */
  private divide(): (() => void) | undefined {
    const { conversations } = this.options;
    if (!conversations) return undefined;
    let since = this.now();
    const addUp = () => {
      const now = this.now();
      this.activities[conversations.activity()] += (now - since) / 1000;
      since = now;
    };
    const stop = conversations.onChange(addUp);
    return () => {
      addUp();
      stop();
    };
  }
}
