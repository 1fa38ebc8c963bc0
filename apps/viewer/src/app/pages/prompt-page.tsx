import { createEffect, createMemo, createSignal, For, on, Show } from "solid-js";
import type { EpisodeDetail, PromptDetail } from "../../api/index.js";
import { onChange } from "../data/events.js";
import { createLoad } from "../data/load.js";
import { apiAddress } from "../data/request.js";
import { useRun } from "../data/run-context.js";
import { bindKeys } from "../keys.js";
import { type DiffPart, diffWords } from "../logic/diff-words.js";
import { formatNumber } from "../logic/format.js";
import { showContent } from "../logic/split-conversation.js";
import { showControls } from "../logic/visible-text.js";
import { address, changeQuery, place } from "../router.js";
import { CopyJson } from "../ui/copy-json.js";
import { gradeReward } from "../ui/dots.js";
import { Loaded } from "../ui/loaded.js";
import { Segmented } from "../ui/segmented.js";
import { Said } from "../ui/text.js";

type Appearance = PromptDetail["appearances"][number];

/** One prompt over the steps of a run: a scrubber, and the changes of the answer. */
export function PromptPage(props: { prompt: string }) {
  const { id } = useRun();
  const load = createLoad<PromptDetail>(() => apiAddress(["runs", id, "prompts", props.prompt]));
  onChange(() => id, ["dump"], load.again);
  return (
    <div class="page">
      <Loaded load={load}>
        {(detail) => (
          <div class="stack">
            <div class="page-head flush">
              <h1>{showControls(detail().prompt.title) || props.prompt}</h1>
              <span class="sub">{showControls(detail().prompt.place ?? detail().prompt.dataSource)}</span>
              <div class="push">
                <CopyJson value={detail} />
              </div>
            </div>
            <Show
              when={detail().appearances.length > 0}
              fallback={<p class="soft">It stands in no file of conversations.</p>}
            >
              <Scrubber appearances={detail().appearances} />
            </Show>
          </div>
        )}
      </Loaded>
    </div>
  );
}

const MODES = [
  ["difference", "Differences"],
  ["answer", "Answer"],
] as const;

function Scrubber(props: { appearances: readonly Appearance[] }) {
  const { id } = useRun();
  const all = () => props.appearances;
  const at = createMemo(() => {
    const asked = all().findIndex((entry) => entry.dump === place().query["at"]);
    return asked < 0 ? all().length - 1 : asked;
  });
  const sample = () => Number(place().query["sample"] ?? 0);
  const set = (index: number) => changeQuery({ at: all()[Math.max(0, Math.min(all().length - 1, index))]!.dump });
  bindKeys("Over the steps", [
    { keys: "l", does: "Next step in which it stands", run: () => set(at() + 1) },
    { keys: "h", does: "Step before", run: () => set(at() - 1) },
    { keys: "j", does: "Next sample", run: () => changeQuery({ sample: sample() + 1 }) },
    { keys: "k", does: "Previous sample", run: () => changeQuery({ sample: Math.max(0, sample() - 1) }) },
  ]);
  const [mode, setMode] = createSignal<"difference" | "answer">("difference");
  const conversationAt = (index: number) => {
    const entries = all()[index]?.conversations ?? [];
    return entries.find((entry) => entry.sample === sample()) ?? entries[0];
  };
  const lineAddress = (index: number) => {
    const entry = conversationAt(index);
    return entry ? apiAddress(["runs", id, "dumps", all()[index]!.dump, "episodes", entry.line]) : null;
  };
  const now = createLoad<EpisodeDetail>(() => lineAddress(at()));
  const before = createLoad<EpisodeDetail>(() => (at() > 0 ? lineAddress(at() - 1) : null));
  // The first has no predecessor.
  const earlier = () => (at() > 0 ? before.data() : undefined);
  const parts = createMemo((): DiffPart[] => {
    const answer = readAnswer(now.data());
    if (mode() === "answer" || !earlier()) return [{ kind: "same", text: answer }];
    return diffWords(readAnswer(earlier()), answer);
  });
  const current = () => all()[at()]!;
  return (
    <>
      <section class="card scrub" aria-label="Steps in which it stands">
        <div class="scrub-track" ref={(track) => createEffect(() => (track.style.maxWidth = `${all().length * 64}px`))}>
          <div class="scrub-marks">
            <For each={all()}>
              {(entry, i) => (
                <button
                  type="button"
                  aria-current={at() === i() ? "step" : undefined}
                  aria-label={`${describe(entry)}: mean reward ${formatNumber(meanReward(entry))}`}
                  title={`${describe(entry)}: mean reward ${formatNumber(meanReward(entry))}`}
                  onClick={() => set(i())}
                >
                  <i class={gradeReward(meanReward(entry))} ref={(bar) => setHeight(bar, () => meanReward(entry))} />
                </button>
              )}
            </For>
          </div>
          <input
            type="range"
            min="0"
            max={all().length - 1}
            value={at()}
            aria-label="Step"
            aria-valuetext={describe(current())}
            onInput={(event) => set(Number(event.currentTarget.value))}
          />
        </div>
        <div class="row">
          <strong>{describe(current())}</strong>
          <span class="soft">
            {at() + 1} of {all().length}
          </span>
          <div class="dots">
            <For each={current().conversations}>
              {(entry) => (
                <button
                  type="button"
                  class={`dot ${gradeReward(entry.reward)} pick-dot`}
                  aria-label={`Sample ${entry.sample}, reward ${formatNumber(entry.reward)}`}
                  aria-pressed={conversationAt(at()) === entry}
                  onClick={() => changeQuery({ sample: entry.sample })}
                />
              )}
            </For>
          </div>
        </div>
      </section>
      <section class="card" aria-label="Answer">
        <header>
          <h2>Sample {conversationAt(at())?.sample ?? "–"}</h2>
          <span class="soft small">reward {formatNumber(conversationAt(at())?.reward ?? null)}</span>
          <Show when={conversationAt(at())}>
            {(entry) => <a href={address(["runs", id, "dumps", current().dump, "episodes", entry().line])}>open</a>}
          </Show>
          <div class="push">
            <Segmented label="Show" value={mode()} choices={MODES} onChange={setMode} />
          </div>
        </header>
        <div class="inside">
          <Loaded load={now}>{() => <Difference parts={parts()} />}</Loaded>
          <Show when={mode() === "difference"}>
            <p class="soft small compared">
              {earlier()
                ? `Compared with ${describe(all()[at() - 1]!)}.`
                : "It is the first: there is none before to compare with."}
            </p>
          </Show>
        </div>
      </section>
    </>
  );
}

function Difference(props: { parts: readonly DiffPart[] }) {
  return (
    <div class="said" dir="auto">
      <For each={props.parts}>
        {(part) => {
          if (part.kind === "added") return <ins class="added">{showControls(part.text)}</ins>;
          if (part.kind === "removed") return <del class="removed">{showControls(part.text)}</del>;
          return part.text.length > 20_000 ? <Said text={part.text} /> : showControls(part.text);
        }}
      </For>
    </div>
  );
}

/** The text after the prompt. */
function readAnswer(detail: EpisodeDetail | undefined): string {
  if (!detail) return "";
  const { messages, prompt_messages } = detail.line;
  return messages
    .slice(prompt_messages)
    .map(({ role, content }) => `${role}: ${showContent(content)}`)
    .join("\n");
}

function meanReward(entry: Appearance): number | null {
  const rewards = entry.conversations.map(({ reward }) => reward).filter((reward) => reward !== null);
  return rewards.length === 0 ? null : rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
}

function describe(entry: Appearance): string {
  if (entry.step === null) return entry.dump;
  return entry.validation ? `validation at step ${entry.step}` : `step ${entry.step}`;
}

function setHeight(bar: HTMLElement, reward: () => number | null): void {
  createEffect(
    on(reward, (value) => (bar.style.height = `${Math.max(6, Math.min(1, Math.max(0, value ?? 0)) * 100)}%`)),
  );
}
