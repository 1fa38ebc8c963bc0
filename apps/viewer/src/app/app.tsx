import { createEffect, createMemo, createSignal, ErrorBoundary, For, Match, Show, Switch } from "solid-js";
import { connected } from "./data/events.js";
import { isStatic, RequestError } from "./data/request.js";
import { nameOfRun } from "./data/run-names.js";
import { switchTheme, theme } from "./data/theme.js";
import icon from "./icon.svg";
import { bindKeys } from "./keys.js";
import { RunPages } from "./pages/run-pages.js";
import { RunsPage } from "./pages/runs-page.js";
import { findSection } from "./pages/sections.js";
import { address, go, place } from "./router.js";
import { Toast } from "./ui/copy-json.js";
import { Help } from "./ui/help.js";
import { Empty, Problem } from "./ui/loaded.js";

/** The frame of all pages: path, theme, help. */
export function App() {
  const [help, setHelp] = createSignal(false);
  const crumbs = createMemo(() => describePlace(place().path));
  bindKeys("Everywhere", [
    { keys: "?", does: "This help", run: () => setHelp(true) },
    { keys: "/", does: "To the filter or search", run: focusFilter },
    { keys: "u", does: "Up", run: () => goUp() },
    { keys: "Escape", does: "Up", run: () => goUp() },
    { keys: "g r", does: "All runs", run: () => go(address([])) },
    { keys: "t d", does: "Dark or light", run: switchTheme },
  ]);
  const goUp = () => {
    const parent = crumbs().at(-2);
    if (parent) go(parent.to);
  };
  createEffect(() => {
    document.title = [
      ...crumbs()
        .map(({ title }) => title)
        .reverse(),
      "Cria",
    ].join(" · ");
  });

  return (
    <div class="shell">
      <header class="bar">
        <a class="brand" href={address([])} aria-label="Cria: all runs">
          <img src={icon} alt="" />
          Cria
        </a>
        <nav aria-label="Where you are">
          <ol class="crumbs">
            <For each={crumbs()}>
              {(crumb, i) => (
                <li>
                  <a href={crumb.to} aria-current={i() === crumbs().length - 1 ? "page" : undefined}>
                    {crumb.title}
                  </a>
                </li>
              )}
            </For>
          </ol>
        </nav>
        <div class="row push">
          <Show when={!connected() && !isStatic}>
            <span class="pill warn" role="status">
              No connection to cria view
            </span>
          </Show>
          <button type="button" class="plain" onClick={() => setHelp(true)} aria-label="Keyboard help">
            <kbd>?</kbd>
          </button>
          <button
            type="button"
            class="plain"
            onClick={switchTheme}
            aria-label={theme() === "dark" ? "Use the light theme" : "Use the dark theme"}
          >
            {theme() === "dark" ? "Light" : "Dark"}
          </button>
        </div>
      </header>
      <main class="main">
        <ErrorBoundary fallback={(error, reset) => <Crash error={error} reset={reset} />}>
          <Switch
            fallback={
              <Empty title="There is no such page" page>
                <a href={address([])}>All runs</a>
              </Empty>
            }
          >
            <Match when={place().path.length === 0}>
              <RunsPage />
            </Match>
            <Match when={place().path[0] === "runs" && place().path[1]}>
              {(run) => (
                <Show when={run()} keyed>
                  {(id) => <RunPages run={id} />}
                </Show>
              )}
            </Match>
          </Switch>
        </ErrorBoundary>
      </main>
      <Help open={help()} close={() => setHelp(false)} />
      <Toast />
    </div>
  );
}

/** Shown for a page that cannot draw its data: a damaged line must not break the other pages. */
function Crash(props: { error: unknown; reset: () => void }) {
  const error = new RequestError(`This page cannot show what it got: ${String(props.error)}`, null, 0);
  createEffect((before: string | undefined) => {
    const now = place().path.join("/");
    if (before !== undefined && before !== now) props.reset();
    return now;
  }, undefined);
  return (
    <div class="page">
      <Problem error={error} again={props.reset} />
    </div>
  );
}

/** Titles and addresses of a page and those above it. */
function describePlace(path: readonly string[]): { title: string; to: string }[] {
  const [kind, run, section, entry, part, last] = path;
  const crumbs = [{ title: "Runs", to: address([]) }];
  if (kind !== "runs" || !run) return crumbs;
  crumbs.push({ title: nameOfRun(run), to: address(["runs", run]) });
  if (!section) return crumbs;
  if (section !== "dumps")
    crumbs.push({ title: findSection(section)?.title ?? section, to: address(["runs", run, section]) });
  if (!entry) return crumbs;
  crumbs.push({
    title: section === "prompts" ? "one prompt" : /^\d/.test(entry) ? `step ${entry}` : entry,
    to: address(["runs", run, section, entry]),
  });
  if (part && last)
    crumbs.push({
      title: part === "groups" ? last : `conversation ${last}`,
      to: address(["runs", run, section, entry, part, last]),
    });
  return crumbs;
}

function focusFilter(): void {
  const input = document.querySelector<HTMLInputElement>("[data-filter]");
  input?.focus();
  input?.select();
}
