import { type Accessor, batch, createEffect, createSignal, on, onCleanup } from "solid-js";
import { createStore, reconcile } from "solid-js/store";
import type { GroupEntry, GroupPage } from "../../api/index.js";
import { getJson, isStatic, RequestError } from "./request.js";

const PAGE = 100;

/** Groups of a step, asked for in pages as they come into sight: a hundred thousand conversations are never all here. */
export interface GroupPages {
  /** Without its groups: counts, and which lines are selected. */
  head: Accessor<Omit<GroupPage, "groups" | "selected"> | undefined>;
  /** Undefined: not here yet. */
  group: (index: number) => GroupEntry | undefined;
  isSelected: (line: number) => boolean;
  error: Accessor<RequestError | undefined>;
  /** Asks for the pages that hold these groups. */
  want: (first: number, last: number) => void;
  /** Asks for what is in sight again; it stays until the answer is there. */
  again: () => void;
}

/**
 * @param address of groups from an offset on.
 * @param arrange the order, where files have all groups and there is no server to sort them.
 */
export function createGroupPages(
  address: (offset: number, limit: number) => string,
  arrange: (groups: readonly GroupEntry[]) => GroupEntry[],
): GroupPages {
  const [head, setHead] = createSignal<GroupPage>();
  const [groups, setGroups] = createStore<Record<number, GroupEntry>>({});
  const [selected, setSelected] = createSignal<ReadonlySet<number> | null>(null);
  const [error, setError] = createSignal<RequestError>();
  let asked = new Set<number>();
  /** Something else is asked for: what was there goes when the answer comes. */
  let isOther = false;
  let running = new AbortController();
  let sight: [first: number, last: number] = [0, 0];

  const ask = async (page: number) => {
    if (asked.has(page)) return;
    asked.add(page);
    const controller = running;
    try {
      if (isStatic) {
        if (page > 0) return;
        const whole = await getJson<GroupPage>(address(0, PAGE), controller.signal);
        if (controller === running) take({ ...whole, groups: arrange(whole.groups) }, 0);
        return;
      }
      // Pages with many conversations come in parts.
      for (let offset = page * PAGE, end = offset + PAGE; offset < end; ) {
        const answer = await getJson<GroupPage>(address(offset, end - offset), controller.signal);
        if (controller !== running) return;
        take(answer, offset);
        if (answer.groups.length === 0) return;
        offset += answer.groups.length;
        end = Math.min(end, answer.matchedGroups);
      }
    } catch (problem) {
      if (controller !== running) return;
      asked.delete(page);
      setError(problem instanceof RequestError ? problem : new RequestError(String(problem), null, 0));
    }
  };
  const take = (answer: GroupPage, offset: number) => {
    batch(() => {
      if (isOther) {
        setGroups(reconcile({}));
        setSelected(null);
        isOther = false;
      }
      const lines = answer.selected;
      setSelected((before) => lines && new Set([...(before ?? []), ...lines]));
      setGroups(Object.fromEntries(answer.groups.map((group, i) => [offset + i, group])));
      setHead(answer);
      setError(undefined);
    });
  };
  const restart = () => {
    running.abort();
    running = new AbortController();
    asked = new Set();
  };
  const want = (first: number, last: number) => {
    sight = [first, last];
    for (let page = Math.floor(first / PAGE); page <= Math.floor(last / PAGE); page++) void ask(page);
  };
  const again = () => {
    restart();
    want(...sight);
  };
  createEffect(
    on(
      () => {
        // What the order depends on is followed as what the address depends on.
        if (isStatic) arrange([]);
        return address(0, PAGE);
      },
      (now, before) => {
        if (now === before && !isStatic) return;
        restart();
        isOther = true;
        want(0, 0);
      },
    ),
  );
  // While its index is built there is more every moment.
  createEffect(() => {
    const now = head();
    if (!now || now.indexed >= now.size) return;
    const timer = setTimeout(again, 700);
    onCleanup(() => clearTimeout(timer));
  });
  onCleanup(() => running.abort());
  return {
    head,
    group: (index) => groups[index],
    isSelected: (line) => selected()?.has(line) ?? true,
    error,
    want,
    again,
  };
}
