import { createEffect, For, Match, Show, Switch } from "solid-js";
import { Dynamic } from "solid-js/web";
import type { RunDetail } from "../../api/index.js";
import { onChange, onEvent } from "../data/events.js";
import { createLoad } from "../data/load.js";
import { apiAddress } from "../data/request.js";
import { RunContext } from "../data/run-context.js";
import { nameRuns } from "../data/run-names.js";
import { bindKeys } from "../keys.js";
import { address, go, place } from "../router.js";
import { Empty } from "../ui/loaded.js";
import { EpisodePage } from "./episode-page.js";
import { GroupPage } from "./group-page.js";
import { PromptPage } from "./prompt-page.js";
import { findSection, sections } from "./sections.js";
import { StepPage } from "./step-page.js";

/** The pages of one run, with the tabs between them. */
export function RunPages(props: { run: string }) {
  const id = props.run;
  const load = createLoad<RunDetail>(() => apiAddress(["runs", id]));
  onChange(() => id, ["run", "dump", "removed"], load.again);
  createEffect(() => {
    const data = load.data();
    if (data) nameRuns([data.summary]);
  });
  // Workers may join before the first step is done.
  onEvent((event) => {
    if (event.type === "live" && event.run === id && event.live?.cluster && load.data()?.isShared === false)
      load.again();
  });
  const path = () => place().path;
  const section = () => path()[2] ?? "";
  const newest = () => load.data()?.dumps.findLast((dump) => dump.kind === "training") ?? load.data()?.dumps.at(-1);
  /** The steps begin with the newest. */
  const inside = (section: string) => {
    if (section === "") return [];
    const first = section === "dumps" ? newest() : undefined;
    return first ? [section, first.id] : [section];
  };
  const tabs = () => sections.map((each) => ({ ...each, to: address(["runs", id, ...inside(each.section)]) }));
  /** Most runs have one process: their workers page is only reachable by a key, without a tab. */
  const isShown = (tab: string) => tab !== "workers" || section() === tab || load.data()?.isShared === true;
  bindKeys(
    "Run",
    tabs().map(({ title, key }, i) => ({ keys: `g ${key}`, does: title, run: () => go(tabs()[i]!.to) })),
  );

  return (
    <RunContext.Provider value={{ id, load }}>
      <nav class="tabs" aria-label="Pages of the run">
        <For each={tabs().filter((tab) => isShown(tab.section))}>
          {(tab) => (
            <a href={tab.to} aria-current={section() === tab.section ? "page" : undefined}>
              {tab.title}
              <Show when={tab.section === "live" && load.data()?.live}>
                {" "}
                <span class="pill accent">
                  <span class="light beating" />
                  now
                </span>
              </Show>
            </a>
          )}
        </For>
      </nav>
      <Switch fallback={<Empty title="There is no such page" page />}>
        <Match when={section() === "dumps" && path()[4] === "groups" && path()[5]}>
          <GroupPage dump={path()[3]!} uid={path()[5]!} />
        </Match>
        <Match when={section() === "dumps" && path()[4] === "episodes" && path()[5]}>
          <EpisodePage dump={path()[3]!} line={Number(path()[5])} />
        </Match>
        <Match when={section() === "dumps" && path()[3]}>{(dump) => <StepPage dump={dump()} />}</Match>
        <Match when={section() === "dumps"}>
          <Empty title="No conversations are written yet" page>
            They come with the first step.
          </Empty>
        </Match>
        <Match when={section() === "prompts" && path()[3]}>{(prompt) => <PromptPage prompt={prompt()} />}</Match>
        <Match when={findSection(section())?.page}>{(page) => <Dynamic component={page()} />}</Match>
      </Switch>
    </RunContext.Provider>
  );
}
