import { createVirtualizer } from "@tanstack/solid-virtual";
import { createEffect, createMemo, For, Show } from "solid-js";
import type { GroupEntry } from "../../api/index.js";
import type { GroupPages } from "../data/group-pages.js";
import { useRun } from "../data/run-context.js";
import { formatNumber } from "../logic/format.js";
import { showControls } from "../logic/visible-text.js";
import { address, go } from "../router.js";
import { createCursor } from "../ui/cursor.js";
import { describeConversation, gradeReward } from "../ui/dots.js";

const ROW = 44;

/** The loaded groups. */
export function groupsOf(pages: GroupPages): GroupEntry[] {
  const count = pages.head()?.matchedGroups ?? 0;
  return Array.from({ length: count }, (_, i) => pages.group(i)).filter((group) => group !== undefined);
}

/** Groups of a step; only the rows in sight exist. */
export function GroupList(props: { dump: string; pages: GroupPages; count: number }) {
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
