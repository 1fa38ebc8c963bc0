import { Show } from "solid-js";
import type { RunStatus } from "../../api/index.js";
import { formatPercent } from "../logic/format.js";

const STATUS: Record<RunStatus, readonly [look: string, means: string]> = {
  running: ["accent", "A process trains it now."],
  ended: ["good", "It came to its last step."],
  failed: ["bad", "It ended with an error."],
  stale: ["warn", "It stopped on its way; cria train resumes it."],
  empty: ["", "No step is written yet."],
};

export function StatusPill(props: { status: RunStatus }) {
  return (
    <span class={`pill ${STATUS[props.status][0]}`} title={STATUS[props.status][1]}>
      <span class="light" classList={{ beating: props.status === "running" }} />
      {props.status}
    </span>
  );
}

/** Held-out success before and after the training. */
export function BeforeAfter(props: { before: number | null; after: number | null }) {
  const look = () => {
    if (props.before === null || props.after === null || props.before === props.after) return "";
    return props.after > props.before ? "good" : "bad";
  };
  return (
    <Show when={props.before !== null || props.after !== null} fallback={<span class="soft">–</span>}>
      <span class="soft">{formatPercent(props.before)} → </span>
      <strong class={look()}>{formatPercent(props.after)}</strong>
    </Show>
  );
}
