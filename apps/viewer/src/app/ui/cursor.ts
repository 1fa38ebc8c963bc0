import { type Accessor, createEffect, createSignal } from "solid-js";
import { bindKeys } from "../keys.js";

export interface Cursor {
  at: Accessor<number>;
  set: (index: number) => void;
}

/** The entry of a list that the keys j and k have reached; Enter opens it. -1: none yet. */
export function createCursor(
  title: string,
  count: Accessor<number>,
  open: (index: number) => void,
  show: (index: number) => void,
): Cursor {
  const [at, set] = createSignal(-1);
  createEffect(() => {
    if (at() >= count()) set(count() - 1);
  });
  const move = (by: number) => {
    if (count() === 0) return;
    const next = Math.max(0, Math.min(count() - 1, at() + by));
    set(next);
    show(next);
  };
  bindKeys(title, [
    { keys: "j", does: "Next entry", run: () => move(1) },
    { keys: "k", does: "Previous entry", run: () => move(at() < 0 ? 1 : -1) },
    { keys: "ArrowDown", does: "Next entry", run: () => move(1) },
    { keys: "ArrowUp", does: "Previous entry", run: () => move(at() < 0 ? 1 : -1) },
    { keys: "Enter", does: "Open it", run: () => at() >= 0 && open(at()) },
  ]);
  return { at, set };
}
