import { createVirtualizer } from "@tanstack/solid-virtual";
import { createEffect, For, Show } from "solid-js";
import type { PromptEntry } from "../../api/index.js";
import { onChange } from "../data/events.js";
import { createLoad } from "../data/load.js";
import { apiAddress, isStatic } from "../data/request.js";
import { useRun } from "../data/run-context.js";
import { showControls } from "../logic/visible-text.js";
import { address, changeQuery, go, place } from "../router.js";
import { CopyJson } from "../ui/copy-json.js";
import { createCursor } from "../ui/cursor.js";
import { Empty, Loaded } from "../ui/loaded.js";

/** The prompts of a run, to follow one over its steps. */
export function PromptsPage() {
  const { id } = useRun();
  const search = () => place().query["search"] ?? "";
  const load = createLoad<PromptEntry[]>(() => apiAddress(["runs", id, "prompts"], { search: search() }));
  onChange(() => id, ["dump"], load.again);
  let timer: ReturnType<typeof setTimeout> | undefined;
  const later = (value: string) => {
    clearTimeout(timer);
    timer = setTimeout(() => changeQuery({ search: value }), 300);
  };
  return (
    <div class="page fixed">
      <div class="page-head">
        <h1>Prompts</h1>
        <span class="sub">how the same question was answered, step after step</span>
        <div class="row push">
          <Show when={!isStatic}>
            <input
              type="search"
              data-filter
              placeholder="Search prompts  /"
              aria-label="Search prompts"
              value={search()}
              onInput={(event) => later(event.currentTarget.value)}
            />
          </Show>
          <CopyJson value={load.data} />
        </div>
      </div>
      <Loaded load={load}>
        {(prompts) => (
          <Show
            when={prompts().length > 0}
            fallback={<Empty title={search() ? "No prompt has this text" : "No prompt was answered yet"} />}
          >
            <PromptList prompts={prompts()} />
          </Show>
        )}
      </Loaded>
    </div>
  );
}

function PromptList(props: { prompts: readonly PromptEntry[] }) {
  const { id } = useRun();
  let scroller!: HTMLDivElement;
  const list = createVirtualizer({
    get count() {
      return props.prompts.length;
    },
    getScrollElement: () => scroller,
    estimateSize: () => 36,
    overscan: 12,
  });
  const cursor = createCursor(
    "Prompts",
    () => props.prompts.length,
    (i) => go(address(["runs", id, "prompts", props.prompts[i]!.id])),
    (i) => list.scrollToIndex(i, { align: "auto" }),
  );
  return (
    <section class="scroller" ref={scroller} tabindex="0" aria-label="Prompts">
      <ul
        class="tall prompt-rows"
        ref={(element) => createEffect(() => (element.style.height = `${list.getTotalSize()}px`))}
      >
        <For each={list.getVirtualItems()}>
          {(row) => (
            <li
              classList={{ at: cursor.at() === row.index }}
              ref={(element) => createEffect(() => (element.style.transform = `translateY(${row.start}px)`))}
            >
              <Show when={props.prompts[row.index]}>
                {(prompt) => (
                  <a href={address(["runs", id, "prompts", prompt().id])}>
                    <span>{showControls(prompt().title) || prompt().id}</span>
                    <span class="soft small">{showControls(prompt().place ?? prompt().dataSource)}</span>
                    <span class="soft small number">
                      {prompt().times} {prompt().times === 1 ? "time" : "times"}
                    </span>
                  </a>
                )}
              </Show>
            </li>
          )}
        </For>
      </ul>
    </section>
  );
}
