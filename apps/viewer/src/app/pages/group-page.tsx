import type { DumpLine } from "@cria/records";
import { createEffect, createMemo, createSignal, For, on, Show } from "solid-js";
import type { GroupDetail } from "../../api/index.js";
import { onChange } from "../data/events.js";
import { createLoad } from "../data/load.js";
import { apiAddress } from "../data/request.js";
import { useRun } from "../data/run-context.js";
import { bindKeys } from "../keys.js";
import { alignText, countEqual, countShared, readPrefix } from "../logic/align-group.js";
import { formatNumber } from "../logic/format.js";
import { showControls } from "../logic/visible-text.js";
import { address, go } from "../router.js";
import { CopyJson } from "../ui/copy-json.js";
import { describeConversation, gradeReward } from "../ui/dots.js";
import { Loaded } from "../ui/loaded.js";
import { Said } from "../ui/text.js";

/** The conversations of one prompt side by side, from the first token in which they differ. */
export function GroupPage(props: { dump: string; uid: string }) {
  const { id } = useRun();
  const load = createLoad<GroupDetail>(() => apiAddress(["runs", id, "dumps", props.dump, "groups", props.uid]));
  onChange(() => id, ["dump"], load.again);
  return (
    <div class="page">
      <Loaded load={load}>
        {(detail) => (
          <div class="stack">
            <div class="page-head flush">
              <h1>{showControls(detail().group.title) || props.uid}</h1>
              <div class="push">
                <CopyJson value={detail} />
              </div>
            </div>
            <dl class="stats">
              <div>
                <dt>mean reward</dt>
                <dd>{formatNumber(detail().group.reward)}</dd>
              </div>
              <div>
                <dt>spread</dt>
                <dd>{formatNumber(detail().group.spread)}</dd>
              </div>
              <div>
                <dt>conversations</dt>
                <dd>{detail().group.conversations.length}</dd>
              </div>
              <div>
                <dt>row</dt>
                <dd>{showControls(detail().group.place ?? "–")}</dd>
              </div>
              <div>
                <dt>ground truth</dt>
                <dd class="clip">{showControls(JSON.stringify(detail().lines[0]?.ground_truth ?? null))}</dd>
              </div>
              <div>
                <dt>elsewhere</dt>
                <dd>
                  <a href={address(["runs", id, "prompts", detail().group.prompt], { at: props.dump })}>
                    over the steps
                  </a>
                </dd>
              </div>
            </dl>
            <Columns dump={props.dump} detail={detail()} />
          </div>
        )}
      </Loaded>
    </div>
  );
}

function Columns(props: { dump: string; detail: GroupDetail }) {
  const { id } = useRun();
  const lines = () => props.detail.lines;
  const entryOf = (i: number) => props.detail.group.conversations[i]!;
  /** If all of them are equal, their text is shown nonetheless. */
  const shared = createMemo(() => {
    const count = countShared(lines());
    const isWhole = lines().every(({ token_ids }) => token_ids.length <= count);
    return isWhole ? Math.min(count, lines()[0]?.prompt_length ?? 0) : count;
  });
  const [reference, setReference] = createSignal(0);
  const [at, setAt] = createSignal(-1);
  const columns: HTMLElement[] = [];
  createEffect(on(lines, () => setReference(0), { defer: true }));
  const move = (by: number) => {
    const next = Math.max(0, Math.min(lines().length - 1, at() + by));
    setAt(next);
    columns[next]?.scrollIntoView({ block: "nearest", inline: "nearest" });
  };
  const open = (i: number) => {
    if (entryOf(i)) go(address(["runs", id, "dumps", props.dump, "episodes", entryOf(i).line]));
  };
  bindKeys("Group", [
    { keys: "l", does: "Next conversation", run: () => move(1) },
    { keys: "h", does: "Previous conversation", run: () => move(-1) },
    { keys: "j", does: "Next conversation", run: () => move(1) },
    { keys: "k", does: "Previous conversation", run: () => move(-1) },
    { keys: "r", does: "Compare the others with this one", run: () => at() >= 0 && setReference(at()) },
    { keys: "Enter", does: "Open it", run: () => at() >= 0 && open(at()) },
  ]);
  return (
    <Show when={lines().length > 0} fallback={<p class="soft">No conversation of this prompt can be read.</p>}>
      <details class="fold">
        <summary>
          {shared()} shared tokens <span class="soft">{describeShared(shared(), lines()[0]!.prompt_length)}</span>
        </summary>
        <Said text={readPrefix(lines()[0]!, shared())} class="soft" />
      </details>
      <section class="columns" tabindex="0" aria-label="Conversations side by side">
        <For each={lines()}>
          {(line, i) => (
            <article
              class="card column"
              classList={{ at: at() === i(), reference: reference() === i() }}
              ref={(element) => (columns[i()] = element)}
              aria-label={describeConversation(entryOf(i()))}
            >
              <header>
                <i class={`dot ${gradeReward(line.reward)}`} />
                <a href={address(["runs", id, "dumps", props.dump, "episodes", entryOf(i()).line])}>
                  sample {line.sample}
                </a>
                <span class="soft small">
                  {line.reward === null ? "failed" : formatNumber(line.reward)}
                  <Show when={line.advantage !== null}> · adv {formatNumber(line.advantage)}</Show>
                </span>
                <button
                  type="button"
                  class="plain push small"
                  aria-pressed={reference() === i()}
                  onClick={() => setReference(i())}
                  title="Compare the others with this one"
                >
                  {reference() === i() ? "reference" : "compare"}
                </button>
              </header>
              <div class="inside">
                <p class="soft small">
                  {reference() === i()
                    ? `${line.token_ids.length} tokens`
                    : describeDifference(line, lines()[reference()]!)}
                </p>
                <For each={alignText(line, shared(), lines()[reference()]!)}>
                  {(part) => (
                    <div
                      classList={{ "part-same": part.same && reference() !== i(), "part-given": !part.sampled }}
                      class="part"
                    >
                      <Said text={part.text.replace(/^\n/, "")} />
                    </div>
                  )}
                </For>
              </div>
            </article>
          )}
        </For>
      </section>
    </Show>
  );
}

function describeShared(tokens: number, prompt: number): string {
  if (tokens === prompt) return "(the prompt)";
  return tokens > prompt ? "(the prompt and more)" : "(of the prompt)";
}

function describeDifference(line: DumpLine, other: DumpLine): string {
  const equal = countEqual(line, other);
  const { length } = line.token_ids;
  if (equal === length && equal === other.token_ids.length) return `the same ${equal} tokens`;
  return `${length} tokens, another from token ${equal} on`;
}
