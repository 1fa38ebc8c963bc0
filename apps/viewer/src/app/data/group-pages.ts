import { type Accessor, batch, createEffect, createSignal, on, onCleanup } from "solid-js";
import { createStore, reconcile } from "solid-js/store";
import type { GroupEntry, GroupPage } from "../../api/index.js";
import { getJson, isStatic, RequestError } from "./request.js";

const PAGE = 100;

/** Groups of a step, loaded in pages as they come into sight, since there may be a hundred thousand conversations. */
export interface GroupPages {
  /** The page without its groups: counts, and the selected lines. */
  head: Accessor<Omit<GroupPage, "groups" | "selected"> | undefined>;
  /** Undefined: not loaded yet. */
  group: (index: number) => GroupEntry | undefined;
  isSelected: (line: number) => boolean;
  error: Accessor<RequestError | undefined>;
  /** Loads the pages with these groups. */
  want: (first: number, last: number) => void;
  /** Reloads the groups in sight; the old ones stay until the answer comes. */
  again: () => void;
}

/**
 * @param address of groups from an offset on.
 * @param arrange the order; used with static files, which have all groups and no server to sort them.
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
  /** True once the address has changed: its old groups are replaced when the answer comes. */
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
        // The order's inputs are tracked like the address's.
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
