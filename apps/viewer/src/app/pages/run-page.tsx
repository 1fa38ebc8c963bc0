import { createMemo, createSignal, For, Show } from "solid-js";
import type { DumpRef, Evidence, Finding, MetricTable, RunDetail } from "../../api/index.js";
import { onChange } from "../data/events.js";
import { createLoad } from "../data/load.js";
import { apiAddress } from "../data/request.js";
import { useRun } from "../data/run-context.js";
import { chatCommand } from "../logic/commands.js";
import { flatten } from "../logic/config-differences.js";
import { formatAgo, formatBytes, formatCount, formatNumber, formatPercent, formatSeconds } from "../logic/format.js";
import { chooseMainMetric, describeCurves, drawProgress, makeSeries } from "../logic/metrics.js";
import { nameMetric } from "../logic/words.js";
import { address, go } from "../router.js";
import { Chart } from "../ui/chart.js";
import { CopyCommand, CopyJson } from "../ui/copy-json.js";
import { createCursor } from "../ui/cursor.js";
import { gradeReward } from "../ui/dots.js";
import { Empty, Loaded } from "../ui/loaded.js";
import { StatusPill } from "../ui/pills.js";

/** One run: its curves, the coach's findings, its steps, its config. */
export function RunPage() {
  const { id, load } = useRun();
  const metrics = createLoad<MetricTable>(() => apiAddress(["runs", id, "metrics"]));
  onChange(() => id, ["metrics"], metrics.again);
  return (
    <div class="page">
      <Loaded load={load}>
        {(detail) => (
          <div class="stack">
            <Head detail={detail()} />
            <Show when={detail().summary.trouble}>
              {(trouble) => (
                <p class="notice" role="status">
                  {trouble()}
                </p>
              )}
            </Show>
            <Tiles detail={detail()} table={metrics.data()} />
            <Show when={metrics.data()}>{(table) => <Curves table={table()} />}</Show>
            <Findings run={id} findings={detail().findings} />
            <Steps run={id} detail={detail()} table={metrics.data()} />
            <Config config={detail().config} />
          </div>
        )}
      </Loaded>
    </div>
  );
}

function Head(props: { detail: RunDetail }) {
  return (
    <div class="page-head flush">
      <h1>{props.detail.summary.name}</h1>
      <StatusPill status={props.detail.summary.status} />
      <span class="sub mono">{props.detail.summary.path}</span>
      <div class="row push">
        <Show when={props.detail.summary.step > 0}>
          <CopyCommand does="Chat with it" command={chatCommand(props.detail.summary.path)} />
        </Show>
        <CopyJson value={() => props.detail} />
      </div>
    </div>
  );
}

function Tiles(props: { detail: RunDetail; table: MetricTable | undefined }) {
  const run = () => props.detail.summary;
  /** The first and the last value of a metric. */
  const change = (name: string) => {
    const values = (props.table?.columns[name] ?? []).filter((value) => value !== null);
    return values.length > 1 ? `${formatNumber(values[0])} → ${formatNumber(values.at(-1))}` : formatNumber(values[0]);
  };
  const results = () =>
    run().algorithm === "sft"
      ? ([
          ["Loss", change("train/loss")],
          ["Held-out loss", change("val/loss")],
        ] as const)
      : ([
          ["Held out, before", formatPercent(run().before)],
          ["Held out, after", formatPercent(run().after)],
        ] as const);
  const tiles = () =>
    [
      ...results(),
      ["Step", run().total === null ? String(run().step) : `${run().step} / ${run().total}`],
      ["Tokens", formatCount(run().tokens)],
      ["Time", formatSeconds(run().seconds)],
      ["Model", run().model ?? "–"],
      ["Algorithm", run().algorithm ?? "–"],
      ["Changed", formatAgo(run().updatedAt)],
    ] as const;
  return (
    <dl class="tiles">
      <For each={tiles()}>
        {([name, value]) => (
          <div>
            <dt>{name}</dt>
            <dd title={value}>{value}</dd>
          </div>
        )}
      </For>
    </dl>
  );
}

/** The metrics that people look at first, if the run has them. */
const SMALL = [
  "actor/entropy",
  "response_length/mean",
  "agent_loop/tool_error_rate",
  "critic/rewards/frac_zero_std",
  "train/grad_norm",
  "train/lr",
];

function Curves(props: { table: MetricTable }) {
  const names = () => Object.keys(props.table.columns);
  const progress = createMemo(() => drawProgress(props.table));
  return (
    <Show
      when={props.table.steps.length > 0}
      fallback={<Empty title="No step is written yet">Curves come with the first one.</Empty>}
    >
      <section class="run-charts" aria-label="Curves">
        <Show when={progress()}>
          {(drawn) => (
            <article class="card">
              <header>
                <h2>{drawn().title}</h2>
                <div class="push">
                  <CopyJson value={() => props.table} of="all metrics" />
                </div>
              </header>
              <Chart
                series={drawn().series}
                axis="step"
                label={describeCurves(drawn().title, drawn().series)}
                height={250}
                share
              />
            </article>
          )}
        </Show>
        <div class="small-charts">
          <For each={SMALL.filter((name) => names().includes(name))}>
            {(name) => {
              const curves = createMemo(() => {
                const made = makeSeries(props.table, name, {
                  label: nameMetric(name),
                  color: 3,
                  axis: "step",
                  smoothing: 0.5,
                });
                return made ? [made] : [];
              });
              return (
                <article class="card quiet-legend">
                  <h3 title={name}>{nameMetric(name)}</h3>
                  <Chart series={curves()} axis="step" label={`${nameMetric(name)} by step`} height={96} />
                </article>
              );
            }}
          </For>
        </div>
      </section>
    </Show>
  );
}

const SEVERITY = { high: "bad", medium: "warn", low: "info" } as const;

function Findings(props: { run: string; findings: readonly Finding[] }) {
  return (
    <section class="stack tight" aria-label="What the coach says">
      <div class="row">
        <h2>Coach</h2>
        <div class="push">
          <CopyJson value={() => props.findings} of="the findings" />
        </div>
      </div>
      <Show
        when={props.findings.length > 0}
        fallback={<p class="soft">Nothing to remark: no rule about runs that do not learn applies.</p>}
      >
        <ul class="findings">
          <For each={props.findings}>
            {(finding) => (
              <li class="card">
                <span class={`pill ${SEVERITY[finding.severity]}`}>{finding.severity}</span>
                <div>
                  <p class="sentence">{finding.sentence}</p>
                  <p class="soft">{finding.remedy}</p>
                  <div class="row small">
                    <For each={finding.keys}>{(key) => <code class="pill">{key}</code>}</For>
                    <For each={finding.evidence}>
                      {(evidence) => <EvidenceLink run={props.run} evidence={evidence} />}
                    </For>
                  </div>
                </div>
              </li>
            )}
          </For>
        </ul>
      </Show>
    </section>
  );
}

/** Links to the conversations that show a finding. */
function EvidenceLink(props: { run: string; evidence: Evidence }) {
  const filter = () =>
    props.evidence.filter ??
    (props.evidence.conversations
      .map(({ uid, sample }) => `uid == ${JSON.stringify(uid)} && sample == ${sample}`)
      .join(" || ") ||
      null);
  return (
    <a href={address(["runs", props.run, "dumps", props.evidence.dump], { filter: filter() })}>
      See it in {/^\d/.test(props.evidence.dump) ? `step ${props.evidence.dump}` : props.evidence.dump}
    </a>
  );
}

function Steps(props: { run: string; detail: RunDetail; table: MetricTable | undefined }) {
  const metric = createMemo(() => chooseMainMetric(Object.keys(props.table?.columns ?? {})) ?? "");
  const valueAt = (step: number | null) => {
    const at = props.table?.steps.indexOf(step ?? -1) ?? -1;
    return at < 0 ? null : (props.table!.columns[metric()]?.[at] ?? null);
  };
  const training = createMemo(() => props.detail.dumps.filter(({ kind }) => kind === "training"));
  const others = () => props.detail.dumps.filter(({ kind }) => kind !== "training");
  const [all, setAll] = createSignal(false);
  /** The newest come last, as in the curves. */
  const shown = () => (all() ? training() : training().slice(-MOST_CELLS));
  const range = createMemo(() => {
    const values = training().flatMap(({ step }) => valueAt(step) ?? []);
    return { low: Math.min(...values), high: Math.max(...values) };
  });
  const open = (id: string) => address(["runs", props.run, "dumps", id]);
  const cells: HTMLAnchorElement[] = [];
  const cursor = createCursor(
    "Steps",
    () => shown().length,
    (i) => go(open(shown()[i]!.id)),
    (i) => cells[i]?.scrollIntoView({ block: "nearest" }),
  );
  return (
    <section class="stack tight" aria-label="Steps">
      <div class="row">
        <h2>Conversations</h2>
        <Show when={training().length > 0}>
          <span class="soft small" title={metric()}>
            a cell is a step
            <Show when={range().low <= range().high}>
              {`, from ${formatNumber(range().low)} (red) to ${formatNumber(range().high)} (green): ${nameMetric(metric())}`}
            </Show>
          </span>
        </Show>
      </div>
      <Show
        when={props.detail.dumps.length > 0}
        fallback={
          <p class="soft">
            No conversations are kept. <code>trainer.rollout_data_dir</code> says where they go.
          </p>
        }
      >
        <div class="step-strip">
          <For each={shown()}>
            {(dump, i) => (
              <a
                ref={(element) => (cells[i()] = element)}
                class={gradeReward(valueAt(dump.step), range().low, range().high)}
                classList={{ at: cursor.at() === i() }}
                href={open(dump.id)}
                title={describeStep(dump, valueAt(dump.step))}
              >
                <span class="visually-hidden">{describeStep(dump, valueAt(dump.step))}</span>
              </a>
            )}
          </For>
        </div>
        <Show when={others().length > 0}>
          <div class="row small">
            <For each={others()}>{(dump) => <a href={open(dump.id)}>{dump.id}</a>}</For>
          </div>
        </Show>
        <Show when={!all() && training().length > shown().length}>
          <div>
            <button type="button" onClick={() => setAll(true)}>
              Show all {training().length} steps
            </button>
          </div>
        </Show>
      </Show>
    </section>
  );
}

/** Steps whose cells are drawn at first. */
const MOST_CELLS = 400;

function describeStep({ step, size }: DumpRef, value: number | null): string {
  return `step ${step}: ${value === null ? formatBytes(size) : formatNumber(value)}`;
}

function Config(props: { config: Record<string, unknown> | null }) {
  const [search, setSearch] = createSignal("");
  const entries = createMemo(() =>
    [...flatten(props.config ?? {})].filter(([key, value]) =>
      `${key} ${value}`.toLowerCase().includes(search().toLowerCase()),
    ),
  );
  return (
    <details class="card config">
      <summary>
        <h2>Config</h2>
      </summary>
      <Show when={props.config} fallback={<p class="inside soft">The run's config is missing or cannot be read.</p>}>
        <div class="inside stack tight">
          <div class="row">
            <input
              type="search"
              data-filter
              placeholder="Search keys and values  /"
              aria-label="Search the config"
              onInput={(event) => setSearch(event.currentTarget.value)}
            />
            <div class="push">
              <CopyJson value={() => props.config} of="the config" />
            </div>
          </div>
          <dl class="keys-values mono">
            <For each={entries()}>
              {([key, value]) => (
                <>
                  <dt>{key}</dt>
                  <dd>{value}</dd>
                </>
              )}
            </For>
          </dl>
        </div>
      </Show>
    </details>
  );
}
