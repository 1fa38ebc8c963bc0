import type { RequestState } from "@cria/core";
import type { RolloutActivity } from "./step-times.js";

/** Numbers of conversations by what they do; the rest of `total` waits for a slot, or for its prompt. */
export interface ConversationCounts {
  done: number;
  generating: number;
  waitingForTools: number;
  total: number;
}

/** Follows the states of all conversations of a training, by their step. */
export class ConversationStates {
  private readonly steps = new Map<number, ConversationCounts>();
  private readonly listeners = new Set<() => void>();

  /** @returns a listener for state changes of the step's conversations; `before` is null for a new conversation. */
  watch(step: number): (state: RequestState, before: RequestState | null) => void {
    return (state, before) => {
      for (const listener of this.listeners) listener();
      const counts = this.steps.get(step) ?? { done: 0, generating: 0, waitingForTools: 0, total: 0 };
      this.steps.set(step, counts);
      count(counts, before, -1);
      count(counts, state, 1);
      if (before === null) counts.total++;
    };
  }

  /**
   * @param listener called before each change: the counts still have the values of the time since the last one.
   * @returns ends it.
   */
  readonly onChange = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  };

  /** Forgets conversations of steps. */
  forget(isOld: (step: number) => boolean): void {
    for (const step of this.steps.keys()) if (isOld(step)) this.steps.delete(step);
  }

  /** Counts of all conversations whose step is wanted. */
  sum(isWanted: (step: number) => boolean = () => true): ConversationCounts {
    const sum = { done: 0, generating: 0, waitingForTools: 0, total: 0 };
    for (const [step, counts] of this.steps) {
      if (!isWanted(step)) continue;
      for (const name of Object.keys(sum) as (keyof typeof sum)[]) sum[name] += counts[name];
    }
    return sum;
  }

  /**
   * Names the work on which a step's conversations wait: `decoding`: one of them generates, or prompts are
   * evaluated; `waiting_for_tools`: no conversation of any step generates, and some wait for tools or interactions;
   * `waiting_for_groups`: anything else, such as slots that conversations of later steps hold, or other machines.
   */
  activity(step: number): RolloutActivity {
    const own = this.sum((other) => other === step);
    if (own.generating > 0) return "decoding";
    const all = this.sum();
    if (all.generating > 0) return "waiting_for_groups";
    if (all.waitingForTools > 0) return "waiting_for_tools";
    return own.total > own.done ? "decoding" : "waiting_for_groups";
  }
}

function count(counts: ConversationCounts, state: RequestState | null, change: 1 | -1): void {
  const add = (name: keyof ConversationCounts) => {
    counts[name] = Math.max(0, counts[name] + change);
  };
  if (state === "running") add("generating");
  else if (state === "tool_calling" || state === "interacting") add("waitingForTools");
  else if (state === "completed" || state === "failed") add("done");
}
