import { createEffect, createMemo, createSignal, For, on, Show } from "solid-js";
import type { EpisodeDetail, NowLogprobs } from "../../api/index.js";
import { apiAddress, isStatic, RequestError } from "../data/request.js";
import { useRun } from "../data/run-context.js";
import { bindKeys } from "../keys.js";
import { formatNumber } from "../logic/format.js";
import { showControls } from "../logic/visible-text.js";
import { changeQuery, place } from "../router.js";
import { Problem } from "../ui/loaded.js";
import { Picture } from "../ui/picture.js";
import { AlternativesPanel } from "./alternatives.js";
import { type Cell, cutCells } from "./cells.js";
import { type Coloring, type ColoringId, listColorings, readClip } from "./colorings.js";
import { createModelClient } from "./model-client.js";
import { meanOf, TokenLines } from "./token-lines.js";

/** A conversation token by token, coloured by a value, with the formula for the pointed one. */
export function TokenView(props: { dump: string; detail: EpisodeDetail }) {
  const { id, load } = useRun();
  const line = () => props.detail.line;
  const cut = createMemo(() => cutCells(line()));
  const [now, setNow] = createSignal<NowLogprobs | null>(null);
  const [problem, setProblem] = createSignal<RequestError | null>(null);
  const [hovered, setHovered] = createSignal(-1);
  const client = createModelClient((what) =>
    apiAddress(["runs", id, "dumps", props.dump, "episodes", props.detail.entry.line, what]),
  );
  const colorings = createMemo(() =>
    listColorings({ line: line(), clip: readClip(load.data()?.config), now: now()?.logprobs ?? null }),
  );
  const coloring = createMemo((): Coloring => {
    const asked = colorings().find((entry) => entry.id === place().query["color"]);
    return asked ?? colorings().find((entry) => entry.values !== null)!;
  });
  const selected = createMemo(() => {
    const token = place().query["token"];
    return token === undefined ? -1 : cut().cells.findLastIndex((cell) => cell.token <= Number(token));
  });
  const select = (cell: number) => changeQuery({ token: cut().cells[cell]?.token });
  const choose = (entry: Coloring) => {
    changeQuery({ color: entry.id });
    if (entry.id === "now" && now() === null && !isStatic) void askNow();
  };
  const askNow = async () => {
    setProblem(null);
    try {
      setNow(await client.ask<NowLogprobs>("now", {}));
    } catch (error) {
      setProblem(error instanceof RequestError ? error : new RequestError(String(error), null, 0));
    }
  };
  createEffect(on(line, () => setNow(null), { defer: true }));
  const move = (by: number) => {
    const start = selected() < 0 ? cut().cells.findIndex((cell) => cell.sampled) - by : selected();
    const next = start + by;
    if (next >= 0 && next < cut().cells.length) select(next);
  };
  /** The next sampled token with a strong colour: the strongest half of the levels. */
  const findNext = (by: 1 | -1) => {
    const { cells } = cut();
    for (let i = selected() + by; i >= 0 && i < cells.length; i += by) {
      const value = cells[i]!.sampled ? meanOf(coloring(), cells[i]!) : null;
      if (value !== null && /-[4-8]|clipped/.test(coloring().look(value, cells[i]!.token))) return select(i);
    }
  };
  bindKeys("Tokens", [
    ...listColorings({ line: line(), clip: { low: 1, high: 1 }, now: null }).map(({ id: color, key, title }) => ({
      keys: key,
      does: `Colour by: ${title}`,
      run: () => choose(colorings().find((entry) => entry.id === color)!),
    })),
    { keys: "ArrowRight", does: "Next token", run: () => move(1) },
    { keys: "ArrowLeft", does: "Previous token", run: () => move(-1) },
    { keys: "n", does: "Next striking token", run: () => findNext(1) },
    { keys: "N", does: "Striking token before", run: () => findNext(-1) },
  ]);
  const shown = () => cut().cells[hovered() >= 0 ? hovered() : selected()];

  return (
    <div class="tokens">
      <div class="token-colors" role="toolbar" aria-label="Colour tokens by">
        <span class="soft">logprob</span>
        <For each={colorings()}>
          {(entry) => (
            <button
              type="button"
              class="plain"
              aria-pressed={coloring().id === entry.id}
              disabled={entry.values === null && (entry.id !== "now" || isStatic)}
              title={entry.about}
              onClick={() => choose(entry)}
            >
              <kbd>{entry.key}</kbd> {entry.short}
            </button>
          )}
        </For>
      </div>
      <div class="token-about">
        <span class="soft">{coloring().about}</span>
        <div class="legend push">
          <For each={coloring().legend}>
            {([look, means]) => (
              <span>
                <i class={`token ${look}`} />
                {means}
              </span>
            )}
          </For>
        </div>
      </div>
      <Show when={!cut().exact}>
        <p class="notice small">
          This dump does not say where each token's text ends: a cell is a span of tokens, coloured by their mean. Dumps
          of format 3 show single tokens.
        </p>
      </Show>
      <Show when={problem()}>{(error) => <Problem error={error()} again={askNow} />}</Show>
      <div class="token-panes">
        <TokenLines
          cells={cut().cells}
          coloring={coloring()}
          selected={selected()}
          onHover={setHovered}
          onSelect={select}
        />
        <aside class="token-side" aria-label="The token">
          <Show when={shown()} fallback={<p class="soft">Point at a token for its numbers, click it to keep it.</p>}>
            {(cell) => (
              <TokenNumbers
                cell={cell()}
                colorings={colorings()}
                first={coloring().id}
                id={line().token_ids[cell().token]!}
              />
            )}
          </Show>
          <Show when={!isStatic && selected() >= 0 && cut().cells[selected()]}>
            {(cell) => (
              <Show
                when={cell().sampled && cell().count === 1}
                fallback={<p class="soft small">Only a single sampled token has alternatives.</p>}
              >
                <AlternativesPanel token={cell().token} chosen={line().token_ids[cell().token]!} client={client} />
              </Show>
            )}
          </Show>
        </aside>
      </div>
    </div>
  );
}

function TokenNumbers(props: { cell: Cell; colorings: readonly Coloring[]; first: ColoringId; id: number }) {
  const single = () => props.cell.count === 1;
  /** The value that the tokens are coloured by comes first. */
  const known = () =>
    props.colorings
      .filter((entry) => meanOf(entry, props.cell) !== null)
      .sort((a, b) => Number(b.id === props.first) - Number(a.id === props.first));
  return (
    <section aria-live="polite">
      <h2 class="token-title">
        <code>{showControls(props.cell.text).replaceAll("\n", "⏎").slice(0, 80) || "◌"}</code>
      </h2>
      <p class="soft small">
        {single()
          ? `token ${props.cell.token}, id ${props.id}`
          : `${props.cell.count} tokens from ${props.cell.token}${props.cell.image ? "" : ": means"}`}
      </p>
      <Show when={props.cell.image}>{(shown) => <Picture image={{ ...shown(), mimeType: shown().mime_type }} />}</Show>
      <dl class="formulas">
        <For each={known()}>
          {(entry) => (
            <>
              <dt>
                {entry.title}
                <strong class="number">{formatNumber(meanOf(entry, props.cell))}</strong>
              </dt>
              <dd>
                <Show when={single()}>
                  <code>{entry.explain(props.cell.token)}</code>
                </Show>
              </dd>
            </>
          )}
        </For>
      </dl>
    </section>
  );
}
