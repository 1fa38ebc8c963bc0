import { createEffect, createMemo, For, Show } from "solid-js";
import type { ArgumentHistogram, EnvironmentDetail, MetricTable, ToolDetail } from "../../api/index.js";
import { onChange } from "../data/events.js";
import { createLoad } from "../data/load.js";
import { apiAddress, isStatic } from "../data/request.js";
import { useRun } from "../data/run-context.js";
import { formatCount, formatPercent, formatSeconds } from "../logic/format.js";
import { showControls } from "../logic/visible-text.js";
import { address, changeQuery, place } from "../router.js";
import { CopyJson } from "../ui/copy-json.js";
import { Empty, Loaded } from "../ui/loaded.js";

/** Statistics of tools: errors, times, arguments, and calls of tools that do not exist. */
export function EnvironmentPage() {
  const { id, load: run } = useRun();
  const query = () => place().query;
  const load = createLoad<EnvironmentDetail>(() =>
    apiAddress(["runs", id, "environment"], { from: query()["from"], to: query()["to"] }),
  );
  onChange(() => id, ["dump"], load.again);
  const last = () =>
    Math.max(0, ...(run.data()?.dumps ?? []).map((dump) => (dump.kind === "training" ? (dump.step ?? 0) : 0)));
  return (
    <div class="page">
      <div class="page-head">
        <h1>Environment</h1>
        <Show when={load.data()}>
          {(detail) => (
            <span class="sub">
              {formatCount(detail().conversations)} conversations of {describeSteps(detail().steps)}
            </span>
          )}
        </Show>
        <div class="row push">
          <Show when={!isStatic && last() > 0}>
            <StepField
              label="From step"
              value={query()["from"]}
              most={last()}
              onChange={(from) => changeQuery({ from })}
            />
            <StepField label="to" value={query()["to"]} most={last()} onChange={(to) => changeQuery({ to })} />
          </Show>
          <CopyJson value={load.data} />
        </div>
      </div>
      <Loaded load={load}>
        {(detail) => (
          <div class="stack">
            <Faults detail={detail()} />
            <Show
              when={detail().tools.length > 0}
              fallback={<Empty title="No tool was called">Tools are named in the task or in tools.yaml.</Empty>}
            >
              <div class="tools">
                <For each={detail().tools}>{(tool) => <ToolCard tool={tool} />}</For>
              </div>
            </Show>
          </div>
        )}
      </Loaded>
    </div>
  );
}

function StepField(props: {
  label: string;
  value: string | undefined;
  most: number;
  onChange: (value: string) => void;
}) {
  return (
    <label class="field">
      {props.label}
      <input
        type="number"
        min="0"
        max={props.most}
        value={props.value ?? ""}
        onChange={(event) => props.onChange(event.currentTarget.value)}
      />
    </label>
  );
}

/** Calls that reached no tool. */
function Faults(props: { detail: EnvironmentDetail }) {
  const { id, load } = useRun();
  const metrics = createLoad<MetricTable>(() => apiAddress(["runs", id, "metrics"]));
  /** Links to the conversations of the last step with such calls. */
  const link = (counter: string, filter: string) => {
    const counts = metrics.data()?.columns[`agent_loop/${counter}/mean`] ?? [];
    const step = metrics.data()?.steps[counts.findLastIndex((count) => count !== null && count > 0)];
    const trained = (load.data()?.dumps ?? []).filter((dump) => dump.kind === "training");
    const dump = trained.find((entry) => entry.step === step) ?? trained.at(-1);
    return dump && address(["runs", id, "dumps", dump.id], { filter });
  };
  return (
    <Show when={props.detail.unknown.length > 0 || props.detail.invalid > 0}>
      <section class="card" aria-label="Calls that reached no tool">
        <header>
          <h2>Calls that reached no tool</h2>
        </header>
        <ul class="inside stack tight">
          <For each={props.detail.unknown}>
            {(tool) => (
              <li class="row">
                <span class="pill bad">unknown tool</span>
                <code>{showControls(tool.name)}</code>
                <span class="soft">called {tool.calls} times</span>
                <a href={link("tool_unknown_tool", "unknown_tools > 0")}>see them</a>
              </li>
            )}
          </For>
          <Show when={props.detail.invalid > 0}>
            <li class="row">
              <span class="pill warn">unreadable</span>
              {props.detail.invalid} calls could not be read{" "}
              <a href={link("tool_invalid_call", "invalid_calls > 0")}>see them</a>
            </li>
          </Show>
        </ul>
      </section>
    </Show>
  );
}

function ToolCard(props: { tool: ToolDetail }) {
  const failed = () => Object.values(props.tool.failures).reduce((sum, count) => sum + count, 0);
  const rate = () => (props.tool.calls > 0 ? failed() / props.tool.calls : 0);
  return (
    <article class="card" aria-label={`Tool ${props.tool.name}`}>
      <header>
        <h2 class="mono">{showControls(props.tool.name)}</h2>
        <span class={`pill push ${rate() > 0.2 ? "bad" : rate() > 0.02 ? "warn" : "good"}`}>
          {formatPercent(rate())} failed
        </span>
      </header>
      <div class="inside">
        <p class="soft">{showControls(props.tool.description)}</p>
        <dl class="stats">
          <div>
            <dt>calls</dt>
            <dd>{formatCount(props.tool.calls)}</dd>
          </div>
          <Show
            when={props.tool.latency}
            fallback={<p class="soft small">No times: trainer.rollout_data_detail: full writes them.</p>}
          >
            {(latency) => (
              <For
                each={
                  [
                    ["median", latency().median],
                    ["95% within", latency().p95],
                    ["longest", latency().longest],
                  ] as const
                }
              >
                {([name, milliseconds]) => (
                  <div>
                    <dt>{name}</dt>
                    <dd>{formatSeconds(milliseconds / 1000)}</dd>
                  </div>
                )}
              </For>
            )}
          </Show>
        </dl>
        <Show when={failed() > 0}>
          <Bars
            title="Why calls failed"
            bins={Object.entries(props.tool.failures).map(([label, count]) => ({ label, count }))}
          />
        </Show>
        <For each={props.tool.arguments}>{(histogram) => <ArgumentBars histogram={histogram} />}</For>
      </div>
    </article>
  );
}

function ArgumentBars(props: { histogram: ArgumentHistogram }) {
  const title = () =>
    `Argument ${showControls(props.histogram.name)}${props.histogram.missing > 0 ? ` (missing in ${props.histogram.missing} calls)` : ""}`;
  return <Bars title={title()} bins={props.histogram.bins} />;
}

function Bars(props: { title: string; bins: readonly { label: string; count: number }[] }) {
  // A bar for several values, such as "1000 others", would make all bars short.
  const most = createMemo(() =>
    Math.max(1, ...props.bins.filter(({ label }) => !isRest(label)).map(({ count }) => count)),
  );
  return (
    <section>
      <h3>{props.title}</h3>
      <div class="bars">
        <For each={props.bins}>
          {(bin) => (
            <>
              <span class="mono" title={showControls(bin.label)}>
                {showControls(bin.label)}
              </span>
              <span class="bar-track">
                <i
                  classList={{ rest: isRest(bin.label) }}
                  ref={(bar) => createEffect(() => (bar.style.width = `${Math.min(1, bin.count / most()) * 100}%`))}
                />
              </span>
              <span class="number">{bin.count.toLocaleString("en")}</span>
            </>
          )}
        </For>
      </div>
    </section>
  );
}

function isRest(label: string): boolean {
  return /\bothers?$/.test(label);
}

function describeSteps(steps: readonly number[]): string {
  if (steps.length === 0) return "no step";
  if (steps.length === 1) return `step ${steps[0]}`;
  return `${steps.length} steps from ${steps[0]} to ${steps.at(-1)}`;
}
