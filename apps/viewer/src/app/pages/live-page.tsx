import { createEffect, createMemo, createSignal, For, Show } from "solid-js";
import type { LiveState } from "../../api/index.js";
import { onEvent } from "../data/events.js";
import { createLoad } from "../data/load.js";
import { apiAddress } from "../data/request.js";
import { useRun } from "../data/run-context.js";
import { formatAgo, formatNumber, formatPercent, formatSeconds } from "../logic/format.js";
import { Chart, type ChartSeries } from "../ui/chart.js";
import { CopyJson } from "../ui/copy-json.js";
import { Empty, Loaded } from "../ui/loaded.js";

/** Number of states in ten minutes. */
const KEPT = 600;
const SHARES = [
  ["decoding", "decoding", "series-1"],
  ["waitingForTools", "waiting for tools", "series-6"],
  ["waitingForGroups", "waiting for groups", "series-5"],
  ["scoring", "scoring", "series-3"],
  ["training", "training", "series-2"],
  ["validation", "validation", "series-4"],
  ["other", "other", "series-8"],
] as const;
/** Most squares for conversations, which would otherwise fill the page. */
const MOST_CELLS = 600;

/** The present work of a training. */
export function LivePage() {
  const { id, load: run } = useRun();
  const load = createLoad<LiveState | null>(() => apiAddress(["runs", id, "live"]));
  const [pushed, setPushed] = createSignal<LiveState | null>();
  const live = () => (pushed() === undefined ? load.data() : pushed());
  const [seen, setSeen] = createSignal<readonly LiveState[]>([]);
  onEvent((event) => {
    if (event.type === "reconnected") load.again();
    if (event.type === "live" && event.run === id) setPushed(event.live);
  });
  createEffect(() => {
    const state = live();
    if (state) setSeen((before) => (before.at(-1)?.at === state.at ? before : [...before, state].slice(-KEPT)));
  });
  return (
    <div class="page">
      <div class="page-head">
        <h1>Live</h1>
        <div class="push">
          <CopyJson value={live} />
        </div>
      </div>
      <Loaded load={load}>
        {() => (
          <Show
            when={live()}
            fallback={
              <Empty title="Nothing runs now">
                {run.data()?.summary.status === "stale"
                  ? "The run stopped on its way; cria train resumes it."
                  : "When it trains, this page shows what it does."}
              </Empty>
            }
          >
            {(state) => <LiveNow state={state()} seen={seen()} />}
          </Show>
        )}
      </Loaded>
    </div>
  );
}

function LiveNow(props: { state: LiveState; seen: readonly LiveState[] }) {
  const total = () =>
    Math.max(
      0.001,
      SHARES.reduce((sum, [name]) => sum + props.state.seconds[name], 0),
    );
  const series = createMemo((): ChartSeries[] => [
    {
      label: "tokens a second",
      color: 1,
      x: props.seen.map(({ at }) => (at - props.seen[0]!.at) / 1000),
      y: props.seen.map(({ tokensPerSecond }) => tokensPerSecond),
    },
  ]);
  const silent = () => Date.now() - props.state.at > 15_000;
  return (
    <div class="stack">
      <Show when={silent()}>
        <p class="notice">It last said something {formatAgo(props.state.at)}: its process may be gone.</p>
      </Show>
      <section class="live-now" aria-label="Now">
        <span class="pill accent">
          <span class="light beating" />
          {props.state.phase}
        </span>
        <span>
          <span class="big">{formatNumber(Math.round(props.state.tokensPerSecond))}</span>{" "}
          <span class="soft">tok/s</span>
        </span>
        <span>
          <span class="big">{props.state.step}</span>
          <span class="soft"> of {props.state.total} steps</span>
        </span>
        <Show when={props.state.staleness > 0}>
          <span title="Updates between the policy that samples this step and the one that learns from it">
            <span class="big">{props.state.staleness}</span> <span class="soft">updates old</span>
          </span>
        </Show>
        <Show when={props.state.eta !== null}>
          <span>
            <span class="big">{formatSeconds(Math.round(props.state.eta!))}</span> <span class="soft">left</span>
          </span>
        </Show>
      </section>
      <progress class="whole" max={props.state.total} value={props.state.step} aria-label="Steps done" />
      <Conversations state={props.state} />
      <section class="stack tight" aria-label="Where the time went">
        <div class="row">
          <h2>Where the time went</h2>
          <span class="soft">{formatSeconds(total())}</span>
        </div>
        <div class="meter tall-meter">
          <For each={SHARES}>
            {([name, label, color]) => (
              <i
                class={color}
                title={label}
                ref={(bar) => createEffect(() => (bar.style.width = `${(props.state.seconds[name] / total()) * 100}%`))}
              />
            )}
          </For>
        </div>
        <div class="legend">
          <For each={SHARES}>
            {([name, label, color]) => (
              <span>
                <i class={color} />
                {label} {formatPercent(props.state.seconds[name] / total())}
              </span>
            )}
          </For>
        </div>
      </section>
      <Show when={props.seen.length > 1}>
        <article class="card quiet-legend">
          <header>
            <h2>Tokens a second, since this page opened</h2>
          </header>
          <Chart series={series()} axis="time" label="Tokens a second since this page opened" height={160} />
        </article>
      </Show>
    </div>
  );
}

function Conversations(props: { state: LiveState }) {
  const now = () => props.state.conversations;
  const cells = createMemo(() => {
    const { done, generating, waitingForTools, total } = now();
    const scale = Math.min(1, MOST_CELLS / Math.max(1, total));
    const counts = [
      ["done", done],
      ["generating", generating],
      ["waiting", waitingForTools],
      ["", Math.max(0, total - done - generating - waitingForTools)],
    ] as const;
    return counts.flatMap(([look, count]) => Array.from({ length: Math.round(count * scale) }, () => look));
  });
  return (
    <Show when={now().total > 0}>
      <section class="stack tight" aria-label="Conversations of this step">
        <h2>Conversations of this step</h2>
        <div class="cells" aria-hidden="true">
          <For each={cells()}>{(look) => <i class={look} />}</For>
        </div>
        <p class="soft">
          {now().done} of {now().total} done, {now().generating} generating, {now().waitingForTools} waiting for tools
        </p>
      </section>
    </Show>
  );
}
