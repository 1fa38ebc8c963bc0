import { createVirtualizer } from "@tanstack/solid-virtual";
import { createEffect, createMemo, For, Show } from "solid-js";
import type { DumpRef, GroupEntry, GroupSort } from "../../api/index.js";
import { onChange } from "../data/events.js";
import { createGroupPages, type GroupPages } from "../data/group-pages.js";
import { apiAddress, isStatic } from "../data/request.js";
import { bindKeys } from "../keys.js";
import { formatBytes, formatNumber, formatPercent } from "../logic/format.js";
import { showControls } from "../logic/visible-text.js";
import { address, changeQuery, go, place } from "../router.js";
import { CopyJson } from "../ui/copy-json.js";
import { createCursor } from "../ui/cursor.js";
import { describeConversation, gradeReward } from "../ui/dots.js";
import { FilterBox } from "../ui/filter-box.js";
import { Bones, Empty, Problem } from "../ui/loaded.js";
import { useRun } from "./run-pages.js";

const SORTS: readonly (readonly [GroupSort, string])[] = [
  ["order", "as written"],
  ["reward", "reward"],
  ["spread", "spread"],
  ["advantage", "|advantage|"],
  ["length", "length"],
  ["errors", "tool errors"],
  ["mismatch", "mismatch"],
];
const ROW = 44;

/** The conversations of a step: a strip of reward dots a group. */
export function StepPage(props: { dump: string }) {
  const { id } = useRun();
  const query = () => place().query;
  const pages = createGroupPages((offset, limit) =>
    apiAddress(["runs", id, "dumps", props.dump], {
      filter: query()["filter"],
      search: query()["search"],
      sort: query()["sort"],
      down: query()["down"],
      offset,
      limit,
    }),
  );
  onChange(() => id, ["dump"], pages.again);
  return (
    <div class="page fixed">
      <StepHead dump={props.dump} pages={pages} />
      <Show when={isStatic}>
        <p class="notice small">
          This is a copy of a run: to filter and sort it, look at the run itself with cria view.
        </p>
      </Show>
      <Show when={!isStatic}>
        <FilterBox
          filter={query()["filter"] ?? ""}
          search={query()["search"] ?? ""}
          problem={pages.error()?.status === 400 ? pages.error()!.message : null}
          onFilter={(filter) => changeQuery({ filter })}
          onSearch={(search) => changeQuery({ search })}
        >
          <label class="field">
            Sort
            <select
              aria-label="Sort groups by"
              value={query()["sort"] ?? "order"}
              onChange={(event) =>
                changeQuery({ sort: event.currentTarget.value === "order" ? null : event.currentTarget.value })
              }
            >
              <For each={SORTS}>
                {([value, title]) => (
                  <option value={value} selected={(query()["sort"] ?? "order") === value}>
                    {title}
                  </option>
                )}
              </For>
            </select>
          </label>
          <button
            type="button"
            aria-pressed={query()["down"] === "1"}
            aria-label="Highest first"
            title="Highest first"
            onClick={() => changeQuery({ down: query()["down"] === "1" ? null : 1 })}
          >
            {query()["down"] === "1" ? "↓" : "↑"}
          </button>
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

function groupsOf(pages: GroupPages): GroupEntry[] {
  const count = pages.head()?.matchedGroups ?? 0;
  return Array.from({ length: count }, (_, i) => pages.group(i)).filter((group) => group !== undefined);
}

function GroupList(props: { dump: string; pages: GroupPages; count: number }) {
  const { id } = useRun();
  let scroller!: HTMLDivElement;
  const list = createVirtualizer({
    get count() {
      return props.count;
    },
    getScrollElement: () => scroller,
    estimateSize: () => ROW,
    overscan: 8,
  });
  createEffect(() => {
    const rows = list.getVirtualItems();
    if (rows.length > 0) props.pages.want(rows[0]!.index, rows.at(-1)!.index);
  });
  const range = createMemo(() => {
    let low = 0;
    let high = 1;
    for (const group of groupsOf(props.pages))
      for (const { reward } of group.conversations)
        if (reward !== null) {
          low = Math.min(low, reward);
          high = Math.max(high, reward);
        }
    return { low, high };
  });
  const open = (index: number) => {
    const group = props.pages.group(index);
    if (!group) return;
    const [only, ...others] = group.conversations;
    go(
      others.length === 0 && only
        ? address(["runs", id, "dumps", props.dump, "episodes", only.line])
        : address(["runs", id, "dumps", props.dump, "groups", group.uid]),
    );
  };
  const cursor = createCursor(
    "Groups",
    () => props.count,
    open,
    (i) => list.scrollToIndex(i, { align: "auto" }),
  );

  return (
    <>
      <div class="group-row heads" aria-hidden="true">
        <span>Prompt</span>
        <span>Rewards of its conversations</span>
        <span class="number">Mean</span>
        <span class="number">Spread</span>
        <span class="number">Tokens</span>
        <span>Remarks</span>
      </div>
      <section class="scroller" ref={scroller} tabindex="0" aria-label="Groups">
        <ul class="tall" ref={(element) => createEffect(() => (element.style.height = `${list.getTotalSize()}px`))}>
          <For each={list.getVirtualItems()}>
            {(row) => (
              <li
                class="group-row"
                classList={{ at: cursor.at() === row.index }}
                ref={(element) => createEffect(() => (element.style.transform = `translateY(${row.start}px)`))}
                aria-setsize={props.count}
                aria-posinset={row.index + 1}
              >
                <Show when={props.pages.group(row.index)} fallback={<span class="soft">…</span>}>
                  {(group) => <GroupRow dump={props.dump} group={group()} pages={props.pages} range={range()} />}
                </Show>
              </li>
            )}
          </For>
        </ul>
      </section>
    </>
  );
}

function GroupRow(props: { dump: string; group: GroupEntry; pages: GroupPages; range: { low: number; high: number } }) {
  const { id } = useRun();
  const conversations = () => props.group.conversations;
  const count = (test: (entry: GroupEntry["conversations"][number]) => boolean) => conversations().filter(test).length;
  const remarks = () =>
    [
      [count((entry) => entry.failed), "failed", "bad"],
      [count((entry) => entry.toolErrors > 0), "with tool errors", "warn"],
      [count((entry) => entry.finish === "length"), "cut", "warn"],
    ].filter(([number]) => number !== 0) as [number, string, string][];
  const tokens = () => {
    const lengths = conversations().map((entry) => entry.sampled);
    return Math.round(lengths.reduce((sum, length) => sum + length, 0) / Math.max(1, lengths.length));
  };
  return (
    <>
      <span class="title">
        <a href={address(["runs", id, "dumps", props.dump, "groups", props.group.uid])}>
          {showControls(props.group.title) || props.group.uid}
        </a>
        <span class="soft small">{showControls(props.group.place ?? props.group.dataSource)}</span>
      </span>
      <span class="dots">
        <For each={conversations()}>
          {(entry) => (
            <a
              class={`dot ${gradeReward(entry.reward, props.range.low, props.range.high)}`}
              classList={{ faded: !props.pages.isSelected(entry.line) }}
              href={address(["runs", id, "dumps", props.dump, "episodes", entry.line])}
              title={describeConversation(entry)}
              tabindex="-1"
            >
              <span class="visually-hidden">{describeConversation(entry)}</span>
            </a>
          )}
        </For>
      </span>
      <span class="number">{formatNumber(props.group.reward)}</span>
      <span class="number" classList={{ soft: props.group.spread === 0 }}>
        {formatNumber(props.group.spread)}
      </span>
      <span class="number soft">{tokens()}</span>
      <span class="remarks">
        <For each={remarks()}>
          {([number, what, look]) => (
            <span class={`pill ${look}`}>
              {number} {what}
            </span>
          )}
        </For>
      </span>
    </>
  );
}
