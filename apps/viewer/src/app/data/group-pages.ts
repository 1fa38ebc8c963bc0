import { type Accessor, batch, createEffect, createSignal, on, onCleanup } from "solid-js";
import { createStore } from "solid-js/store";
import type { GroupEntry, GroupPage } from "../../api/index.js";
import { getJson, RequestError } from "./request.js";

const PAGE = 100;

/** Groups of a step, asked for in pages as they come into sight: a hundred thousand conversations are never all here. */
export interface GroupPages {
  /** Without its groups: counts, and which lines are selected. */
  head: Accessor<Omit<GroupPage, "groups" | "selected"> | undefined>;
  /** Undefined: not here yet. */
  group: (index: number) => GroupEntry | undefined;
  isSelected: (line: number) => boolean;
  error: Accessor<RequestError | undefined>;
  loading: Accessor<boolean>;
  /** Asks for the pages that hold these groups. */
  want: (first: number, last: number) => void;
  again: () => void;
}

/** @param address of a page that begins at a group. */
export function createGroupPages(address: (offset: number, limit: number) => string): GroupPages {
  const [head, setHead] = createSignal<GroupPage>();
  const [groups, setGroups] = createStore<Record<number, GroupEntry>>({});
  const [error, setError] = createSignal<RequestError>();
  const [loading, setLoading] = createSignal(true);
  let selected: Set<number> | null = null;
  let known = new Set<number>();
  let running = new AbortController();

  const ask = async (page: number, fresh: boolean) => {
    if (fresh) {
      running.abort();
      running = new AbortController();
      known = new Set();
    }
    if (known.has(page)) return;
    known.add(page);
    const controller = running;
    setLoading(true);
    try {
      const answer = await getJson<GroupPage>(address(page * PAGE, PAGE), controller.signal);
      if (controller !== running) return;
      batch(() => {
        if (fresh) {
          selected = null;
          setGroups((before) => Object.fromEntries(Object.keys(before).map((key) => [key, undefined])) as never);
        }
        if (answer.selected) selected = new Set([...(selected ?? []), ...answer.selected]);
        setGroups(Object.fromEntries(answer.groups.map((group, i) => [page * PAGE + i, group])));
        setHead(answer);
        setError(undefined);
      });
    } catch (problem) {
      if (controller !== running) return;
      known.delete(page);
      setError(problem instanceof RequestError ? problem : new RequestError(String(problem), null, 0));
    }
    setLoading(false);
  };
  createEffect(
    on(
      () => address(0, PAGE),
      () => void ask(0, true),
    ),
  );
  onCleanup(() => running.abort());
  return {
    head,
    group: (index) => groups[index],
    isSelected: (line) => selected === null || (head() !== undefined && selected.has(line)),
    error,
    loading,
    want: (first, last) => {
      for (let page = Math.floor(first / PAGE); page <= Math.floor(last / PAGE); page++) void ask(page, false);
    },
    again: () => void ask(0, true),
  };
}
