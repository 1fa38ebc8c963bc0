import type { DumpLine } from "@cria/records";
import { createEffect, createMemo, For, Show } from "solid-js";
import { formatNumber, formatSeconds } from "../logic/format.js";
import { makeTimeline, type TimelineBar } from "../logic/timeline.js";

const KINDS = [
  ["generation", "series-1"],
  ["tool", "series-2"],
  ["user", "series-3"],
  ["waiting", "series-8"],
] as const;

/** Generation, tools and waiting over time. */
export function TimelineView(props: { line: DumpLine }) {
  const bars = createMemo(() => makeTimeline(props.line));
  const total = () => Math.max(1, ...(bars() ?? []).map((bar) => bar.end));
  const sumOf = (kind: TimelineBar["kind"]) =>
    (bars() ?? []).filter((bar) => bar.kind === kind).reduce((sum, bar) => sum + bar.end - bar.start, 0);
  return (
    <Show when={bars()} fallback={<Totals line={props.line} />}>
      <div class="stack">
        <dl class="stats">
          <For each={KINDS}>
            {([kind]) => (
              <div>
                <dt>{kind}</dt>
                <dd>{formatSeconds(sumOf(kind) / 1000)}</dd>
              </div>
            )}
          </For>
          <div>
            <dt>whole conversation</dt>
            <dd>{formatSeconds(total() / 1000)}</dd>
          </div>
        </dl>
        <ol class="timeline card" aria-label="Turns over time">
          <For each={bars()!}>
            {(bar) => (
              <li>
                <span>{bar.title}</span>
                <span class="track">
                  <i
                    class={KINDS.find(([kind]) => kind === bar.kind)![1]}
                    ref={(element) => place(element, bar, total)}
                  />
                </span>
                <span class="number">{formatSeconds((bar.end - bar.start) / 1000)}</span>
                <span class="number soft">
                  {bar.kind === "generation" && bar.end > bar.start
                    ? `${formatNumber(Math.round((bar.tokens / (bar.end - bar.start)) * 1000))} tok/s`
                    : bar.tokens > 0
                      ? `${bar.tokens} tokens`
                      : ""}
                </span>
              </li>
            )}
          </For>
        </ol>
      </div>
    </Show>
  );
}

function place(element: HTMLElement, bar: TimelineBar, total: () => number): void {
  createEffect(() => {
    element.style.marginLeft = `${(bar.start / total()) * 100}%`;
    element.style.width = `${((bar.end - bar.start) / total()) * 100}%`;
  });
}

/** Older dumps and those of trainings only have sums. */
function Totals(props: { line: DumpLine }) {
  const entries = () =>
    Object.entries(props.line.metrics ?? {}).filter(([name]) => /_s$/.test(name) || /tokens$/.test(name));
  return (
    <div class="stack">
      <p class="notice">This dump does not say when turns began and ended. What it counts of the whole conversation:</p>
      <dl class="stats">
        <For each={entries()}>
          {([name, value]) => (
            <div>
              <dt class="mono">{name}</dt>
              <dd>{/_s$/.test(name) ? formatSeconds(value) : formatNumber(value)}</dd>
            </div>
          )}
        </For>
      </dl>
    </div>
  );
}
