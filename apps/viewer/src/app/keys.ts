import { createSignal, onCleanup } from "solid-js";

export interface KeyBinding {
  /** `j`, `Enter`, `/`, or two in a row: `g r`. */
  keys: string;
  /** Description for the help. */
  does: string;
  run: () => void;
}

interface Scope {
  title: string;
  bindings: readonly KeyBinding[];
}

const [scopes, setScopes] = createSignal<readonly Scope[]>([]);
let first: { key: string; at: number } | null = null;

/** The current bindings, the innermost last. */
export { scopes };

/** Binds keys while the calling component exists. The innermost binding wins. */
export function bindKeys(title: string, bindings: readonly KeyBinding[]): void {
  const scope = { title, bindings };
  setScopes((list) => [...list, scope]);
  onCleanup(() => setScopes((list) => list.filter((entry) => entry !== scope)));
}

export function listenToKeys(): void {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target as HTMLElement;
    // Content behind a dialog takes no keys, wherever the focus is: a click next to the dialog's controls leaves no
    // focus in it.
    if (document.querySelector("dialog[open]")) return;
    if (isTyping(target)) {
      if (event.key === "Escape") target.blur();
      return;
    }
    // Enter and space belong to the focused element.
    if ((event.key === "Enter" || event.key === " ") && target.closest("a, button, summary, input, select")) return;
    if (event.key.startsWith("Arrow") && target.closest("select, input, [role=slider]")) return;
    const binding = find(event.key, event.timeStamp);
    if (!binding) return;
    event.preventDefault();
    binding.run();
  });
}

/** @param at time of the key press in milliseconds: a busy page handles it later. */
function find(key: string, at: number): KeyBinding | undefined {
  const before = first && at - first.at < 1200 ? first.key : null;
  first = null;
  const all = scopes().flatMap((scope) => scope.bindings);
  const two = before && all.findLast((binding) => binding.keys === `${before} ${key}`);
  if (two) return two;
  if (all.some((binding) => binding.keys.startsWith(`${key} `))) first = { key, at };
  return all.findLast((binding) => binding.keys === key);
}

function isTyping(target: HTMLElement): boolean {
  if (target.isContentEditable || target.tagName === "TEXTAREA") return true;
  return target instanceof HTMLInputElement && !["checkbox", "radio", "range", "button"].includes(target.type);
}
