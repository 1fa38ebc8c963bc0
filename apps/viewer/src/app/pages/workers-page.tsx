import { createMemo, createSignal, For, Index, Show } from "solid-js";
import type { ClusterView, LiveState, MetricTable, WorkerState, WorkerView } from "../../api/index.js";
import { onChange, onEvent } from "../data/events.js";
import { createLoad } from "../data/load.js";
import { apiAddress } from "../data/request.js";
import { useRun } from "../data/run-context.js";
import { formatBytes, formatCount, formatNumber, formatSeconds } from "../logic/format.js";
import { showControls } from "../logic/visible-text.js";
import {
  describeKinds,
  describeSlots,
  listUseless,
  makeClusterCharts,
  sortWorkers,
  sumKinds,
  sumWorkers,
} from "../logic/workers.js";
import { Chart } from "../ui/chart.js";
import { CopyJson } from "../ui/copy-json.js";
import { Empty, Loaded } from "../ui/loaded.js";

/** The workers of a training on other machines: now, while it runs, and over its steps. */
export function WorkersPage() {
  const { id } = useRun();
  const load = createLoad<LiveState | null>(() => apiAddress(["runs", id, "live"]));
  const metrics = createLoad<MetricTable>(() => apiAddress(["runs", id, "metrics"]));
  const [pushed, setPushed] = createSignal<LiveState | null>();
  onEvent((event) => {
    if (event.type === "reconnected") load.again();
    if (event.type === "live" && event.run === id) setPushed(event.live);
  });
  onChange(() => id, ["metrics"], metrics.again);
  const cluster = () => (pushed() === undefined ? load.data() : pushed())?.cluster ?? null;
  const charts = createMemo(() => makeClusterCharts(metrics.data() ?? NONE));
  return (
    <div class="page">
      <div class="page-head">
        <h1>Workers</h1>
        <Show when={cluster()}>
          {(view) => (
            <span class="sub">
              of <code>{showControls(view().bus)}</code>, coordinated by <code>{showControls(view().coordinator)}</code>{" "}
              (term {view().term}, class <code>{showControls(view().class)}</code>)
            </span>
          )}
        </Show>
        <div class="push">
          <CopyJson value={() => ({ cluster: cluster(), steps: metrics.data()?.steps, charts: charts() })} />
        </div>
      </div>
      <Loaded load={load}>
        {() => (
          <Loaded load={metrics}>
            {() => (
              <Show
                when={cluster() || charts().length > 0}
                fallback={
                  <Empty title="All is done in one process">
                    <HowToShare />
                  </Empty>
                }
              >
                <div class="stack">
                  <Show
                    when={cluster()}
                    fallback={<p class="soft">Nothing runs now: who works is shown while the run trains.</p>}
                  >
                    {(view) => <Now view={view()} />}
                  </Show>
                  <section class="charts" aria-label="Over the steps">
                    <For each={charts()}>
                      {({ title, series }) => (
                        <article class="card" classList={{ "quiet-legend": series.length === 1 }}>
                          <header>
                            <h2>{title}</h2>
                          </header>
                          <Chart series={series} axis="step" label={`${title}, by step`} height={130} />
                        </article>
                      )}
                    </For>
                  </section>
                </div>
              </Show>
            )}
          </Loaded>
        )}
      </Loaded>
    </div>
  );
}

const NONE: MetricTable = { steps: [], seconds: [], tokens: [], columns: {}, heldOut: [] };

/** The commands that let other machines help. */
function HowToShare() {
  return (
    <>
      <p>
        To share its work, train over a bus: <code>cria train config.yaml --bus nats://host:4222</code>
      </p>
      <p>
        and on each machine that helps: <code>cria worker --bus nats://host:4222</code>
      </p>
    </>
  );
}

function Now(props: { view: ClusterView }) {
  const workers = createMemo(() => sortWorkers(props.view.workers));
  return (
    <>
      <Alarms workers={workers()} />
      <Tiles view={props.view} />
      <Show
        when={workers().length > 0}
        fallback={
          <Empty title="No worker has joined yet">
            On each machine that helps: <code>cria worker --bus {showControls(props.view.bus)}</code>
          </Empty>
        }
      >
        <WorkerTable workers={workers()} />
      </Show>
    </>
  );
}

/** Wrong results come first, as the most serious problem. */
function Alarms(props: { workers: readonly WorkerView[] }) {
  const wrong = () => props.workers.filter(({ audits }) => audits.failed > 0);
  const useless = () => listUseless(props.workers);
  return (
    <>
      <Show when={wrong().length > 0}>
        <div class="notice error" role="status">
          <strong>Audits failed: results differ from what the coordinator computed again</strong>
          <ul>
            <For each={wrong()}>
              {({ id, audits, reason }) => (
                <li>
                  <code>{showControls(id)}</code>: {audits.failed} of {audits.failed + audits.passed} audits failed
                  {reason === null ? "" : `; ${showControls(reason)}`}
                </li>
              )}
            </For>
          </ul>
        </div>
      </Show>
      <Show when={useless().length > 0}>
        <div class="notice" role="status">
          <strong>Workers are there and do nothing</strong>
          <ul>
            <For each={useless()}>
              {({ id, text }) => (
                <li>
                  <code>{showControls(id)}</code> {showControls(text)}
                </li>
              )}
            </For>
          </ul>
        </div>
      </Show>
    </>
  );
}

function Tiles(props: { view: ClusterView }) {
  const sums = createMemo(() => sumWorkers(props.view));
  const tiles = () => {
    const { jobs, policy, traffic, here } = props.view;
    const { ready, slots, doing, done, rate, passed, failed } = sums();
    return [
      ["Ready workers", `${ready} of ${props.view.workers.length}`],
      ["Jobs in hand", `${doing} of ${slots} slots`],
      ["Results a minute", formatNumber(rate)],
      ["Jobs done by workers", formatCount(done)],
      ["Jobs done here", formatCount(sumKinds(here)), describeKinds(here)],
      ["Jobs outstanding", `${jobs.outstanding}, ${jobs.waiting} wait`],
      ["Redelivered", String(jobs.redelivered)],
      ["Given up", String(jobs.abandoned)],
      ["Conflicts", String(jobs.conflicts), "Second results of a job that differ from the first"],
      ["Audits", failed > 0 ? `${failed} of ${failed + passed} failed` : `${passed} passed`],
      ["Weights", `version ${policy.version}`],
      ["Sent in", `${formatSeconds(policy.seconds)}, ${formatBytes(policy.bytes)}`],
      ["Traffic: weights", formatBytes(traffic.policy)],
      ["Traffic: gradients", formatBytes(traffic.gradients)],
      ["Traffic: jobs", formatBytes(traffic.jobs)],
    ] as const;
  };
  return (
    <dl class="tiles wide-tiles">
      <Index each={tiles()}>
        {(tile) => (
          <div>
            <dt>{tile()[0]}</dt>
            <dd title={tile()[2] ?? tile()[1]} classList={{ bad: tile()[0] === "Audits" && sums().failed > 0 }}>
              {tile()[1]}
            </dd>
          </div>
        )}
      </Index>
    </dl>
  );
}

const STATES: Record<WorkerState, readonly [look: string, text: string]> = {
  ready: ["good", "ready"],
  failing: ["bad", "failing"],
  stuck: ["bad", "stuck"],
  draining: ["warn", "draining"],
  "shut-out": ["bad", "shut out"],
  gone: ["", "gone"],
};

function WorkerTable(props: { workers: readonly WorkerView[] }) {
  return (
    <section class="grid-table" aria-label="Who works" tabindex="0">
      <table>
        <thead>
          <tr>
            <th>Worker</th>
            <th>Class</th>
            <th>State</th>
            <th>Audits</th>
            <th>In hand of its slots</th>
            <th class="number">Oldest</th>
            <th>Done</th>
            <th class="number">A minute</th>
            <th class="number">Failed</th>
            <th class="number">Declined</th>
          </tr>
        </thead>
        <tbody>
          {/* By place: what is new is written into the rows that are there. */}
          <Index each={props.workers}>{(worker) => <WorkerRow worker={worker()} />}</Index>
        </tbody>
      </table>
    </section>
  );
}

function WorkerRow(props: { worker: WorkerView }) {
  const audits = () => props.worker.audits;
  return (
    <tr>
      <td>
        <span class="run-name">{showControls(props.worker.id)}</span>
        <div class="small soft clip" title={showControls(props.worker.host)}>
          {showControls(props.worker.host)}
        </div>
      </td>
      <td>
        <div class="mono clip" title={showControls(props.worker.class)}>
          {showControls(props.worker.class)}
        </div>
      </td>
      <td>
        <span class={`pill ${STATES[props.worker.state][0]}`}>{STATES[props.worker.state][1]}</span>
        <Show when={props.worker.reason}>{(reason) => <div class="small reason">{showControls(reason())}</div>}</Show>
      </td>
      <td>
        <Show when={audits().failed > 0}>
          <span class="pill bad">✗ {audits().failed} failed</span>{" "}
        </Show>
        <span class="soft">{audits().passed} passed</span>
      </td>
      <td>{describeSlots(props.worker)}</td>
      <td class="number">{props.worker.oldest > 0 ? formatSeconds(props.worker.oldest) : ""}</td>
      <td>{describeKinds(props.worker.done)}</td>
      <td class="number">{formatNumber(props.worker.rate)}</td>
      <td class="number" title={showControls(props.worker.lastFailure ?? "")}>
        {props.worker.failed}
      </td>
      <td class="number">{props.worker.declined}</td>
    </tr>
  );
}
