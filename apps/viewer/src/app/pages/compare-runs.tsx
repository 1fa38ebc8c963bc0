import { createEffect, createMemo, createSignal, For, on, Show } from "solid-js";
import { createStore } from "solid-js/store";
import type { MetricTable, RunDetail, RunSummary } from "../../api/index.js";
import { onEvent } from "../data/events.js";
import { apiAddress, getJson } from "../data/request.js";
import { findDifferences } from "../logic/config-differences.js";
import { chooseMainMetric, makeSeries, sortMetrics } from "../logic/metrics.js";
import { describeMetric } from "../logic/words.js";
import { changeQuery, place } from "../router.js";
import { Chart, type ChartAxis, type ChartSeries } from "../ui/chart.js";
import { CopyJson } from "../ui/copy-json.js";
import { Segmented } from "../ui/segmented.js";

const AXES = [
  ["step", "Step"],
  ["time", "Time"],
  ["tokens", "Tokens"],
] as const;

/** Curves of any metrics over several runs, and the differences of their configs. */
export function CompareRuns(props: { runs: readonly RunSummary[] }) {
  const [tables, setTables] = createStore<Record<string, MetricTable | undefined>>({});
  const [configs, setConfigs] = createStore<Record<string, RunDetail | undefined>>({});
  const [failed, setFailed] = createSignal("");
  const ids = createMemo(() => props.runs.map(({ id }) => id), [], { equals: (a, b) => a.join() === b.join() });

  const askMetrics = (id: string) =>
    getJson<MetricTable>(apiAddress(["runs", id, "metrics"])).then(
      (table) => setTables(id, () => table),
      (error: Error) => setFailed(`${id}: ${error.message}`),
    );
  createEffect(
    on(ids, (now) => {
      for (const id of now) {
        if (!tables[id]) void askMetrics(id);
        if (!configs[id])
          getJson<RunDetail>(apiAddress(["runs", id])).then(
            (detail) => setConfigs(id, () => detail),
            () => {},
          );
      }
    }),
  );
  onEvent((event) => {
    if (event.type === "metrics" && ids().includes(event.run)) void askMetrics(event.run);
  });

  const columns = createMemo(() => [...new Set(ids().flatMap((id) => Object.keys(tables[id]?.columns ?? {})))]);
  const metrics = createMemo(() => {
    const asked = (place().query["metrics"] ?? "").split(",").filter(Boolean);
    if (asked.length > 0) return asked;
    // A chart for the runs that have a success, and one for those of sft.
    const own = ids().flatMap((id) => chooseMainMetric(Object.keys(tables[id]?.columns ?? {})) ?? []);
    return [...new Set(own)];
  });
  const axis = () => (place().query["x"] ?? "step") as ChartAxis;
  const smoothing = () => Number(place().query["smooth"] ?? 0);
  const change = (i: number, metric: string | null) => {
    const next = metrics().flatMap((entry, at) => (at !== i ? [entry] : metric === null ? [] : [metric]));
    changeQuery({ metrics: next.join(",") });
  };
  const series = (metric: string) =>
    props.runs.flatMap((run, i): ChartSeries[] => {
      const table = tables[run.id];
      const look = { label: run.name, color: i + 1, axis: axis(), smoothing: smoothing() };
      const made = table && makeSeries(table, metric, look);
      return made ? [made] : [];
    });

  return (
    <>
      <section class="stack tight" aria-label="Curves">
        <div class="row">
          <h2>Curves</h2>
          <Show when={failed()}>
            <span class="bad small">{failed()}</span>
          </Show>
          <div class="row push">
            <label class="field">
              Smoothing
              <input
                type="range"
                min="0"
                max="0.98"
                step="0.02"
                value={smoothing()}
                onInput={(event) =>
                  changeQuery({ smooth: event.currentTarget.value === "0" ? null : event.currentTarget.value })
                }
              />
              <output class="number smoothing">{smoothing().toFixed(2)}</output>
            </label>
            <Segmented label="Horizontal axis" value={axis()} choices={AXES} onChange={(x) => changeQuery({ x })} />
            <button type="button" onClick={() => changeQuery({ metrics: [...metrics(), metrics().at(-1)].join(",") })}>
              Add a chart
            </button>
          </div>
        </div>
        <div class="charts">
          <For each={metrics()}>
            {(metric, i) => (
              <article class="card">
                <header>
                  <MetricChoice value={metric} columns={columns()} onChange={(name) => change(i(), name)} />
                  <div class="row push">
                    <Show when={metrics().length > 1}>
                      <button
                        type="button"
                        class="plain"
                        onClick={() => change(i(), null)}
                        aria-label={`Remove the chart of ${metric}`}
                      >
                        Remove
                      </button>
                    </Show>
                    <CopyJson value={() => series(metric)} of={`the curves of ${metric}`} />
                  </div>
                </header>
                <Show
                  when={series(metric).length > 0}
                  fallback={<p class="inside soft">None of the picked runs has values of {metric}.</p>}
                >
                  <Chart series={series(metric)} axis={axis()} label={`${metric} of the picked runs by ${axis()}`} />
                </Show>
              </article>
            )}
          </For>
        </div>
      </section>
      <Show when={props.runs.length > 1}>
        <ConfigTable runs={props.runs} configs={props.runs.map(({ id }) => configs[id]?.config ?? null)} />
      </Show>
    </>
  );
}

function MetricChoice(props: { value: string; columns: readonly string[]; onChange: (name: string) => void }) {
  return (
    <select aria-label="Metric" value={props.value} onChange={(event) => props.onChange(event.currentTarget.value)}>
      <For each={sortMetrics([...new Set([props.value, ...props.columns])])}>
        {(name) => (
          <option value={name} selected={name === props.value}>
            {describeMetric(name)}
          </option>
        )}
      </For>
    </select>
  );
}

function ConfigTable(props: { runs: readonly RunSummary[]; configs: readonly (Record<string, unknown> | null)[] }) {
  const differences = createMemo(() => findDifferences(props.configs));
  return (
    <section class="stack tight" aria-label="Config differences">
      <div class="row">
        <h2>Where their configs differ</h2>
        <span class="soft">{differences().length}</span>
        <div class="push">
          <CopyJson value={differences} of="the config differences" />
        </div>
      </div>
      <Show when={differences().length > 0} fallback={<p class="soft">Their configs are equal.</p>}>
        <section class="grid-table short" tabindex="0" aria-label="Differences">
          <table>
            <thead>
              <tr>
                <th>Key</th>
                <For each={props.runs}>
                  {(run, i) => (
                    <th>
                      <i class={`swatch series-${i() + 1}`} /> {run.name}
                    </th>
                  )}
                </For>
              </tr>
            </thead>
            <tbody>
              <For each={differences()}>
                {({ key, values }) => (
                  <tr>
                    <td class="mono">{key}</td>
                    <For each={values}>
                      {(value) => (
                        <td class="mono clip wide" title={value ?? ""}>
                          {value ?? <span class="soft">–</span>}
                        </td>
                      )}
                    </For>
                  </tr>
                )}
              </For>
            </tbody>
          </table>
        </section>
      </Show>
    </section>
  );
}
