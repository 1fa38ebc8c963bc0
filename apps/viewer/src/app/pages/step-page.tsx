import { For, Show } from "solid-js";
import type { DumpRef, GroupSort } from "../../api/index.js";
import { onChange } from "../data/events.js";
import { createGroupPages, type GroupPages } from "../data/group-pages.js";
import { apiAddress, isStatic } from "../data/request.js";
import { useRun } from "../data/run-context.js";
import { bindKeys } from "../keys.js";
import { formatBytes, formatPercent } from "../logic/format.js";
import { sortGroups } from "../logic/sort-groups.js";
import { address, changeQuery, go, place } from "../router.js";
import { CopyJson } from "../ui/copy-json.js";
import { FilterBox } from "../ui/filter-box.js";
import { Bones, Empty, Problem } from "../ui/loaded.js";
import { GroupList, groupsOf } from "./group-list.js";

const SORTS: readonly (readonly [GroupSort, string])[] = [
  ["order", "as written"],
  ["reward", "reward"],
  ["spread", "spread"],
  ["advantage", "|advantage|"],
  ["length", "length"],
  ["errors", "tool errors"],
  ["mismatch", "mismatch"],
];
/** The conversations of a step: a strip of reward dots for each group. */
export function StepPage(props: { dump: string }) {
  const { id } = useRun();
  const query = () => place().query;
  const pages = createGroupPages(
    (offset, limit) =>
      apiAddress(["runs", id, "dumps", props.dump], {
        filter: query()["filter"],
        search: query()["search"],
        sort: query()["sort"],
        down: query()["down"],
        offset,
        limit,
      }),
    (groups) => sortGroups(groups, (query()["sort"] ?? "order") as GroupSort, query()["down"] === "1"),
  );
  onChange(() => id, ["dump"], pages.again);
  return (
    <div class="page fixed">
      <StepHead dump={props.dump} pages={pages} />
      <Show
        when={!isStatic}
        fallback={
          <div class="filters">
            <SortChoice />
            <span class="soft small">This is a copy of a run: cria view filters and searches the run itself.</span>
          </div>
        }
      >
        <FilterBox
          filter={query()["filter"] ?? ""}
          search={query()["search"] ?? ""}
          problem={pages.error()?.status === 400 ? pages.error()!.message : null}
          onFilter={(filter) => changeQuery({ filter })}
          onSearch={(search) => changeQuery({ search })}
        >
          <SortChoice />
        </FilterBox>
      </Show>
      <Show when={pages.error() && pages.error()!.status !== 400}>
        <Problem error={pages.error()!} again={pages.again} />
      </Show>
      <Show
        when={pages.head()}
        fallback={
          <Show when={!pages.error()}>
            <Bones />
          </Show>
        }
      >
        {(head) => (
          <Show
            when={head().matchedGroups > 0}
            fallback={
              <Empty title={head().total === 0 ? "No conversation is written here yet" : "No conversation is selected"}>
                <Show when={head().total > 0}>
                  <button type="button" onClick={() => changeQuery({ filter: null, search: null })}>
                    Show all {head().total}
                  </button>
                </Show>
              </Empty>
            }
          >
            <GroupList dump={props.dump} pages={pages} count={head().matchedGroups} />
          </Show>
        )}
      </Show>
    </div>
  );
}

function SortChoice() {
  const sort = () => place().query["sort"] ?? "order";
  const down = () => place().query["down"] === "1";
  return (
    <>
      <label class="field">
        Sort
        <select
          aria-label="Sort groups by"
          value={sort()}
          onChange={({ currentTarget: { value } }) => changeQuery({ sort: value === "order" ? null : value })}
        >
          <For each={SORTS}>
            {([value, title]) => (
              <option value={value} selected={sort() === value}>
                {title}
              </option>
            )}
          </For>
        </select>
      </label>
      <button
        type="button"
        aria-pressed={down()}
        aria-label="Highest first"
        title="Highest first"
        onClick={() => changeQuery({ down: down() ? null : 1 })}
      >
        {down() ? "↓" : "↑"}
      </button>
    </>
  );
}

function StepHead(props: { dump: string; pages: GroupPages }) {
  const { id, load } = useRun();
  const dumps = () => load.data()?.dumps ?? [];
  const at = () => dumps().findIndex((dump) => dump.id === props.dump);
  const neighbour = (by: 1 | -1): DumpRef | undefined => {
    const kind = dumps()[at()]?.kind;
    const rest = by > 0 ? dumps().slice(at() + 1) : dumps().slice(0, Math.max(0, at())).reverse();
    return rest.find((dump) => dump.kind === kind);
  };
  const open = (dump: DumpRef | undefined) => {
    if (dump) go(address(["runs", id, "dumps", dump.id], place().query));
  };
  bindKeys("Step", [
    { keys: "h", does: "Previous step", run: () => open(neighbour(-1)) },
    { keys: "l", does: "Next step", run: () => open(neighbour(1)) },
  ]);
  const head = () => props.pages.head();
  return (
    <div class="page-head">
      <h1>{/^\d/.test(props.dump) ? `Step ${props.dump}` : props.dump}</h1>
      <fieldset class="segments" aria-label="Other steps">
        <button type="button" disabled={!neighbour(-1)} onClick={() => open(neighbour(-1))} aria-label="Previous step">
          ←
        </button>
        <button type="button" disabled={!neighbour(1)} onClick={() => open(neighbour(1))} aria-label="Next step">
          →
        </button>
      </fieldset>
      <select
        aria-label="Step"
        value={props.dump}
        onChange={(event) => go(address(["runs", id, "dumps", event.currentTarget.value], place().query))}
      >
        <For each={dumps()}>
          {(dump) => (
            <option value={dump.id} selected={dump.id === props.dump}>
              {dump.kind === "training" ? `step ${dump.step}` : dump.id}
            </option>
          )}
        </For>
      </select>
      <Show when={head()}>
        {(now) => (
          <span class="sub" role="status">
            {now().matched === now().total
              ? `${now().total.toLocaleString("en")} conversations in ${now().matchedGroups.toLocaleString("en")} groups`
              : `${now().matched.toLocaleString("en")} of ${now().total.toLocaleString("en")} conversations, in ${now().matchedGroups.toLocaleString("en")} groups`}
            <Show when={now().indexed < now().size}>
              {" "}
              <span class="pill info">
                reading: {formatPercent(now().indexed / now().size)} of {formatBytes(now().size)}
              </span>
            </Show>
          </span>
        )}
      </Show>
      <div class="push">
        <CopyJson value={() => groupsOf(props.pages)} of="the groups that are loaded" />
      </div>
    </div>
  );
}
