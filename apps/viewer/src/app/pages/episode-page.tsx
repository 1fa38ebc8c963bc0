import { createEffect, createMemo, Match, on, Show, Switch } from "solid-js";
import type { EpisodeDetail } from "../../api/index.js";
import { createLoad } from "../data/load.js";
import { apiAddress, isStatic } from "../data/request.js";
import { useRun } from "../data/run-context.js";
import { BranchesView } from "../episode/branches-view.js";
import { ChatView } from "../episode/chat-view.js";
import { RewardPanel } from "../episode/reward-panel.js";
import { TimelineView } from "../episode/timeline-view.js";
import { bindKeys } from "../keys.js";
import { replayCommand } from "../logic/commands.js";
import { formatNumber } from "../logic/format.js";
import { address, changeQuery, go, place } from "../router.js";
import { TokenView } from "../tokens/token-view.js";
import { CopyCommand, CopyJson } from "../ui/copy-json.js";
import { gradeReward } from "../ui/dots.js";
import { Loaded } from "../ui/loaded.js";
import { Segmented } from "../ui/segmented.js";

type View = "chat" | "tokens" | "timeline" | "branches";

/** One conversation: as a chat, as tokens, over time, as a tree. */
export function EpisodePage(props: { dump: string; line: number }) {
  const { id, load: run } = useRun();
  const replay = () => {
    const dump = run.data()?.dumps.find((entry) => entry.id === props.dump);
    return dump ? replayCommand(run.data()!.summary.path, dump, props.line) : null;
  };
  const load = createLoad<EpisodeDetail>(() => apiAddress(["runs", id, "dumps", props.dump, "episodes", props.line]));
  const view = () => (place().query["view"] ?? "chat") as View;
  const show = (next: View) => changeQuery({ view: next === "chat" ? null : next });
  const open = (line: number | null | undefined) => {
    if (line === null || line === undefined) return;
    const { view: kept, color } = place().query;
    go(address(["runs", id, "dumps", props.dump, "episodes", line], { view: kept, color }));
  };
  const sibling = (by: 1 | -1) => {
    const all = load.data()?.group.conversations ?? [];
    return all[all.findIndex((entry) => entry.line === props.line) + by]?.line;
  };
  const lineOf = (sample: number) => load.data()?.group.conversations.find((entry) => entry.sample === sample)?.line;
  bindKeys("Conversation", [
    { keys: "h", does: "Previous conversation", run: () => open(load.data()?.previous) },
    { keys: "l", does: "Next conversation", run: () => open(load.data()?.next) },
    { keys: "H", does: "Previous of its group", run: () => open(sibling(-1)) },
    { keys: "L", does: "Next of its group", run: () => open(sibling(1)) },
    { keys: "c", does: "Chat", run: () => show("chat") },
    { keys: "t t", does: "Tokens", run: () => show("tokens") },
    { keys: "i", does: "Timeline", run: () => show("timeline") },
    { keys: "b", does: "Branches", run: () => show("branches") },
    { keys: "u", does: "Up: its group", run: () => openGroup() },
    { keys: "Escape", does: "Up: its group", run: () => openGroup() },
  ]);
  const openGroup = () => {
    const group = load.data()?.group;
    if (group?.conversations.length === 1) go(address(["runs", id, "dumps", props.dump]));
    else if (group) go(address(["runs", id, "dumps", props.dump, "groups", group.uid]));
  };
  const views = createMemo(() => {
    const all: (readonly [View, string])[] = [
      ["chat", "Chat"],
      ["tokens", "Tokens"],
      ["timeline", "Timeline"],
    ];
    if ((load.data()?.line.segments?.length ?? 0) > 0) all.push(["branches", "Branches"]);
    return all;
  });
  let page!: HTMLDivElement;
  createEffect(
    on(
      () => props.line,
      () => page.scrollTo({ top: 0 }),
      { defer: true },
    ),
  );

  return (
    <div class="page" classList={{ fixed: view() === "tokens" }} ref={page}>
      <Loaded load={load}>
        {(detail) => (
          <>
            <div class="page-head">
              <i class={`dot ${gradeReward(detail().entry.reward)}`} />
              <h1>
                {detail().entry.failed ? "Failed" : `Reward ${formatNumber(detail().entry.reward)}`}
                <span class="soft"> · sample {detail().entry.sample}</span>
              </h1>
              <Show when={detail().entry.success !== null}>
                <span class={`pill ${detail().entry.success ? "good" : "bad"}`}>
                  {detail().entry.success ? "success" : "no success"}
                </span>
              </Show>
              <span class={`pill ${detail().entry.finish === "length" ? "warn" : ""}`}>{detail().entry.finish}</span>
              <span class="sub small">
                {detail().entry.turns} turns, {detail().entry.sampled} of {detail().entry.tokens} tokens sampled,
                advantage {formatNumber(detail().entry.advantage)}
              </span>
              <Show when={detail().line.branch}>
                {(branch) => (
                  <span class="sub small">
                    tree {branch().tree + 1}
                    <Show when={branch().parent !== null}>
                      {", goes on from "}
                      <button type="button" onClick={() => open(lineOf(branch().parent!))}>
                        sample {branch().parent} after turn {branch().turns}
                      </button>
                    </Show>
                  </span>
                )}
              </Show>
              <div class="row push">
                <fieldset class="segments" aria-label="Other conversations">
                  <button
                    type="button"
                    aria-label="Previous conversation"
                    disabled={detail().previous === null}
                    onClick={() => open(detail().previous)}
                  >
                    ←
                  </button>
                  <button type="button" onClick={openGroup}>
                    Group of {detail().group.conversations.length}
                  </button>
                  <button
                    type="button"
                    aria-label="Next conversation"
                    disabled={detail().next === null}
                    onClick={() => open(detail().next)}
                  >
                    →
                  </button>
                </fieldset>
                <Segmented label="View" value={view()} choices={views()} onChange={show} />
                <Show when={!isStatic && view() !== "tokens"}>
                  <button
                    type="button"
                    title="Goes on from a token, with another one in its place"
                    onClick={() => changeQuery({ view: "tokens", token: firstSampled(detail().line) })}
                  >
                    Fork it
                  </button>
                </Show>
                <Show when={replay()}>{(command) => <CopyCommand does="Replay it" command={command()} />}</Show>
                <CopyJson value={detail} />
              </div>
            </div>
            <Show when={detail().line.error}>
              {(error) => (
                <p class="notice error">
                  It failed: <span class="mono">{error()}</span>
                </p>
              )}
            </Show>
            <Switch>
              <Match when={view() === "tokens"}>
                <TokenView dump={props.dump} detail={detail()} />
              </Match>
              <Match when={view() === "timeline"}>
                <TimelineView line={detail().line} />
              </Match>
              <Match when={view() === "branches"}>
                <BranchesView line={detail().line} />
              </Match>
              <Match when={true}>
                <div class="episode">
                  <ChatView line={detail().line} schemas={detail().schemas} />
                  <RewardPanel dump={props.dump} detail={detail()} />
                </div>
              </Match>
            </Switch>
          </>
        )}
      </Loaded>
    </div>
  );
}

/** The first token that the policy chose; null: it chose none. */
function firstSampled({ response_mask }: EpisodeDetail["line"]): number | null {
  const at = response_mask.indexOf(1);
  return at < 0 ? null : at;
}
