import { createEffect, createMemo, createSignal, For, Show } from "solid-js";
import type { RunSummary } from "../../api/index.js";
import { onChange } from "../data/events.js";
import { createLoad } from "../data/load.js";
import { apiAddress } from "../data/request.js";
import { nameRuns } from "../data/run-names.js";
import { bindKeys } from "../keys.js";
import { formatAgo, formatCount, formatSeconds } from "../logic/format.js";
import { address, changeQuery, go, place } from "../router.js";
import { CopyJson } from "../ui/copy-json.js";
import { createCursor } from "../ui/cursor.js";
import { Empty, Loaded } from "../ui/loaded.js";
import { BeforeAfter, StatusPill } from "../ui/pills.js";
import { SparkLine } from "../ui/spark-line.js";
import { CompareRuns } from "./compare-runs.js";

/** At most one run per colour. */
const MOST_PICKED = 8;

/** All runs, and curves and configs of the picked ones. */
export function RunsPage() {
  const load = createLoad<RunSummary[]>(() => apiAddress(["runs"]));
  onChange(() => null, ["run", "removed", "metrics"], load.again);
  createEffect(() => nameRuns(load.data() ?? []));
  const [search, setSearch] = createSignal("");
  const runs = createMemo(() => {
    const words = search().toLowerCase().split(/\s+/).filter(Boolean);
    return (load.data() ?? []).filter((run) => {
      const text = `${run.name} ${run.model} ${run.algorithm} ${run.status}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
  });
  const picked = createMemo(() => {
    const ids = (place().query["runs"] ?? "").split(",").filter(Boolean).map(decodeURIComponent);
    return ids.filter((id) => load.data()?.some((run) => run.id === id));
  });
  const pick = (id: string) => {
    const next = picked().includes(id) ? picked().filter((entry) => entry !== id) : [...picked(), id];
    changeQuery({ runs: next.slice(-MOST_PICKED).map(encodeURIComponent).join(",") });
  };
  const rows: HTMLTableRowElement[] = [];
  const cursor = createCursor(
    "Runs",
    () => runs().length,
    (i) => go(address(["runs", runs()[i]!.id])),
    (i) => rows[i]?.scrollIntoView({ block: "nearest" }),
  );
  bindKeys("Runs", [
    { keys: "x", does: "Pick the run for curves, or leave it out", run: () => pickAt() },
    { keys: "c", does: "Pick none", run: () => changeQuery({ runs: null }) },
  ]);
  const pickAt = () => {
    const run = runs()[cursor.at()];
    if (run) pick(run.id);
  };

  return (
    <div class="page">
      <div class="page-head">
        <h1>Runs</h1>
        <Show when={load.data()}>{(all) => <span class="sub">{all().length}</span>}</Show>
        <div class="row push">
          <input
            type="search"
            data-filter
            placeholder="Search  /"
            aria-label="Search runs by name, model, algorithm or status"
            value={search()}
            onInput={(event) => setSearch(event.currentTarget.value)}
          />
          <CopyJson value={runs} />
        </div>
      </div>
      <Loaded load={load}>
        {(all) => (
          <Show
            when={all().length > 0}
            fallback={
              <Empty title="No runs here yet">
                <code>cria demo</code> makes one in about two minutes; it appears here by itself.
              </Empty>
            }
          >
            <div class="stack">
              <section class="grid-table" aria-label="Runs" tabindex="0">
                <table>
                  <thead>
                    <tr>
                      <th>
                        <span class="visually-hidden">Picked</span>
                      </th>
                      <th>Run</th>
                      <th>Held-out success</th>
                      <th>Status</th>
                      <th>Training</th>
                      <th class="number">Step</th>
                      <th>Model</th>
                      <th>Algorithm</th>
                      <th class="number">Seed</th>
                      <th class="number">Tokens</th>
                      <th class="number">Time</th>
                      <th class="number">Changed</th>
                    </tr>
                  </thead>
                  <tbody>
                    <For each={runs()}>
                      {(run, i) => (
                        <tr
                          ref={(element) => (rows[i()] = element)}
                          classList={{ at: cursor.at() === i() }}
                          onClick={() => cursor.set(i())}
                        >
                          <td>
                            <input
                              type="checkbox"
                              aria-label={`Draw the curves of ${run.name}`}
                              checked={picked().includes(run.id)}
                              onChange={() => pick(run.id)}
                            />
                            <i
                              class={`swatch ${picked().includes(run.id) ? `series-${picked().indexOf(run.id) + 1}` : ""}`}
                            />
                          </td>
                          <td>
                            <a class="run-name" href={address(["runs", run.id])} title={run.path}>
                              {run.name}
                            </a>
                            <Show when={run.trouble}>
                              <div class="small warn clip" title={run.trouble!}>
                                {run.trouble}
                              </div>
                            </Show>
                          </td>
                          <td>
                            <BeforeAfter before={run.before} after={run.after} />
                          </td>
                          <td>
                            <StatusPill status={run.status} />
                          </td>
                          <td>
                            <SparkLine
                              values={run.curve}
                              label={`${run.algorithm === "sft" ? "Loss" : "Success"} by step of ${run.name}`}
                            />
                          </td>
                          <td class="number">
                            {run.step}
                            <span class="soft">{run.total === null ? "" : ` / ${run.total}`}</span>
                          </td>
                          <td class="soft clip" title={run.model ?? ""}>
                            {run.model ?? "–"}
                          </td>
                          <td class="soft">{run.algorithm ?? "–"}</td>
                          <td class="number soft">{run.seed ?? "–"}</td>
                          <td class="number soft">{formatCount(run.tokens)}</td>
                          <td class="number soft">{formatSeconds(run.seconds)}</td>
                          <td class="number soft">{formatAgo(run.updatedAt)}</td>
                        </tr>
                      )}
                    </For>
                  </tbody>
                </table>
              </section>
              <Show
                when={picked().length > 0}
                fallback={
                  <p class="soft small">
                    Pick runs to draw their curves over each other and to see where their configs differ: tick them, or{" "}
                    <kbd>j</kbd> <kbd>k</kbd> and <kbd>x</kbd>.
                  </p>
                }
              >
                <CompareRuns runs={picked().map((id) => all().find((run) => run.id === id)!)} />
              </Show>
            </div>
          </Show>
        )}
      </Loaded>
    </div>
  );
}
