import { createSignal } from "solid-js";

export type Theme = "light" | "dark";

const KEY = "cria-theme";
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const [theme, setTheme] = createSignal<Theme>(readStored() ?? systemTheme());

/** The current theme. */
export { theme };

/** Follows the system's theme until the user chooses one. */
export function followTheme(): void {
  show(theme());
  dark.addEventListener("change", () => {
    if (readStored() === null) show(systemTheme());
  });
}

export function switchTheme(): void {
  const next = theme() === "dark" ? "light" : "dark";
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // Storage may be forbidden: then the choice lasts as long as the page.
  }
  show(next);
}

function show(next: Theme): void {
  document.documentElement.dataset["theme"] = next;
  setTheme(next);
}

function systemTheme(): Theme {
  return dark.matches ? "dark" : "light";
}

function readStored(): Theme | null {
  try {
    const stored = localStorage.getItem(KEY);
    return stored === "light" || stored === "dark" ? stored : null;
  } catch {
    return null;
  }
}
