import { For, Show } from "solid-js";
import type { EpisodeDetail } from "../../api/index.js";
import { useRun } from "../data/run-context.js";
import { formatNumber } from "../logic/format.js";
import { showControls } from "../logic/visible-text.js";
import { address } from "../router.js";
import { Said } from "../ui/text.js";

/** The parts of a conversation's reward, and the ground truth it was judged by. */
export function RewardPanel(props: { dump: string; detail: EpisodeDetail }) {
  const { id } = useRun();
  const line = () => props.detail.line;
  const sum = () =>
    (["outcome", "length", "tools", "turns"] as const).map((name) => [name, line().rewards[name]] as const);
  return (
    <aside class="rewards" aria-label="Reward and row">
      <section class="card">
        <header>
          <h2>Reward</h2>
          <strong class="push number">{formatNumber(line().reward)}</strong>
        </header>
        <div class="inside stack tight">
          <table class="plain-table">
            <caption class="visually-hidden">Parts of the reward</caption>
            <tbody>
              <For each={sum()}>
                {([name, value]) => (
                  <tr classList={{ soft: value === 0 }}>
                    <th scope="row">{name}</th>
                    <td class="number">{formatNumber(value)}</td>
                  </tr>
                )}
              </For>
            </tbody>
          </table>
          <h3>Score {formatNumber(line().score)}, judged by</h3>
          <Show when={line().parts.length > 0} fallback={<p class="soft small">This dump does not say who judged.</p>}>
            <ul class="parts">
              <For each={line().parts}>
                {(part) => (
                  <li>
                    <div class="row">
                      <strong class="mono">{showControls(part.name)}</strong>
                      <span class="number push">
                        {formatNumber(part.value)} × {formatNumber(part.weight)}
                      </span>
                    </div>
                    <span class="soft small">{showControls(part.by)}</span>
                  </li>
                )}
              </For>
            </ul>
          </Show>
          <Show when={line().before}>
            {(before) => (
              <p class="soft small">
                Before it was judged again: score {formatNumber(before().score)}, reward {formatNumber(before().reward)}
                .
              </p>
            )}
          </Show>
          <Show when={Object.keys(line().extra ?? {}).length > 0}>
            <h3>What else they returned</h3>
            <Said text={JSON.stringify(line().extra, null, 2)} />
          </Show>
        </div>
      </section>
      <section class="card">
        <header>
          <h2>Row</h2>
        </header>
        <div class="inside stack tight">
          <dl class="keys-values">
            <dt>Ground truth</dt>
            <dd>
              <Said text={asText(line().ground_truth)} />
            </dd>
            <dt>Place</dt>
            <dd>{showControls(line().place ?? "–")}</dd>
            <dt>Data source</dt>
            <dd>{showControls(line().data_source)}</dd>
            <dt>Prompt</dt>
            <dd>
              <a
                href={address(["runs", id, "prompts", props.detail.group.prompt], {
                  at: props.dump,
                  sample: line().sample,
                })}
              >
                over the steps
              </a>
            </dd>
          </dl>
        </div>
      </section>
      <details class="card">
        <summary class="inside">
          <h2 class="inline">Counters</h2>
        </summary>
        <dl class="keys-values mono inside">
          <For each={Object.entries(line().metrics ?? {})}>
            {([name, value]) => (
              <>
                <dt>{showControls(name)}</dt>
                <dd class="number">{formatNumber(value)}</dd>
              </>
            )}
          </For>
        </dl>
      </details>
    </aside>
  );
}

function asText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}
