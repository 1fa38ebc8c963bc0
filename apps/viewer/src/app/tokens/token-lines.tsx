import { createEffect, createMemo, createSignal, on, onCleanup, onMount } from "solid-js";
import type { Cell } from "./cells.js";
import type { Coloring } from "./colorings.js";
import { layOut, type Piece } from "./layout.js";

const LINE = 23;
/** Width of the margin for numbers, in pixels. */
const MARGIN = 76;
/** Lines drawn above and below those in sight. */
const MORE = 6;

/**
 * Tokens as text; only the lines in sight exist, because a conversation may have a hundred thousand tokens. Lines are
 * made by hand, without Solid: a scroll of a whole page must fit in a frame.
 */
export function TokenLines(props: {
  cells: readonly Cell[];
  coloring: Coloring;
  /** Index of a cell; -1: none. */
  selected: number;
  onHover: (cell: number) => void;
  onSelect: (cell: number) => void;
}) {
  let scroller!: HTMLDivElement;
  let sheet!: HTMLDivElement;
  const [columns, setColumns] = createSignal(100);
  const rows = createMemo(() => layOut(props.cells, columns()));
  const drawn = new Map<number, HTMLDivElement>();

  const draw = (fresh: boolean) => {
    const first = Math.max(0, Math.floor(scroller.scrollTop / LINE) - MORE);
    const last = Math.min(rows().length - 1, Math.ceil((scroller.scrollTop + scroller.clientHeight) / LINE) + MORE);
    for (const [index, element] of drawn)
      if (fresh || index < first || index > last) {
        element.remove();
        drawn.delete(index);
      }
    const added = document.createDocumentFragment();
    for (let index = first; index <= last; index++) {
      if (drawn.has(index)) continue;
      const element = drawLine(rows()[index]!, rows()[index - 1], props.cells, props.coloring, props.selected);
      element.style.top = `${index * LINE}px`;
      drawn.set(index, element);
      added.append(element);
    }
    sheet.append(added);
  };
  let frame = 0;
  const later = () => {
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      draw(false);
    });
  };
  const rowOf = (cell: number) => {
    let low = 0;
    let high = rows().length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (rows()[middle]!.at(-1)!.cell < cell) low = middle + 1;
      else high = middle;
    }
    return low;
  };

  onMount(() => {
    const measure = () => {
      const probe = document.createElement("span");
      probe.className = "token";
      probe.textContent = "0".repeat(100);
      sheet.append(probe);
      const width = probe.getBoundingClientRect().width / 100;
      probe.remove();
      if (width > 0) setColumns(Math.max(20, Math.floor((scroller.clientWidth - MARGIN) / width)));
    };
    measure();
    const watcher = new ResizeObserver(() => {
      measure();
      later();
    });
    watcher.observe(scroller);
    // Keys choose a token, too: the page binds them.
    scroller.addEventListener("scroll", later, { passive: true });
    sheet.addEventListener("mouseover", (event) => props.onHover(cellOf(event)));
    sheet.addEventListener("mouseleave", () => props.onHover(-1));
    sheet.addEventListener("click", (event) => props.onSelect(cellOf(event)));
    createEffect(
      on(
        () => [rows(), props.coloring] as const,
        () => {
          sheet.style.height = `${rows().length * LINE}px`;
          draw(true);
        },
      ),
    );
    createEffect(
      on(
        () => props.selected,
        (cell) => {
          for (const element of sheet.querySelectorAll(".token.chosen")) element.classList.remove("chosen");
          if (cell < 0) return;
          const top = rowOf(cell) * LINE;
          if (top < scroller.scrollTop) scroller.scrollTop = top - LINE;
          else if (top > scroller.scrollTop + scroller.clientHeight - 2 * LINE)
            scroller.scrollTop = top - scroller.clientHeight + 3 * LINE;
          draw(false);
          for (const element of sheet.querySelectorAll(`[data-cell="${cell}"]`)) element.classList.add("chosen");
        },
      ),
    );
    onCleanup(() => {
      watcher.disconnect();
      cancelAnimationFrame(frame);
    });
  });

  return (
    <section class="token-lines" ref={scroller} tabindex="0" aria-label="Tokens">
      <div class="token-sheet" ref={sheet} />
    </section>
  );
}

/** The cell of an event; -1: none. */
function cellOf(event: Event): number {
  const found = (event.target as HTMLElement).closest<HTMLElement>("[data-cell]");
  return found ? Number(found.dataset["cell"]) : -1;
}

function drawLine(
  pieces: readonly Piece[],
  before: readonly Piece[] | undefined,
  cells: readonly Cell[],
  coloring: Coloring,
  selected: number,
): HTMLDivElement {
  const line = document.createElement("div");
  line.className = "token-line";
  const number = document.createElement("span");
  number.className = "token-number";
  // A continued cell has its number on the line before.
  if (before?.at(-1)?.cell !== pieces[0]!.cell) number.textContent = String(cells[pieces[0]!.cell]!.token);
  line.append(number);
  for (const { cell: index, text } of pieces) {
    const cell = cells[index]!;
    const value = meanOf(coloring, cell);
    const element = document.createElement("span");
    element.className = `token ${value === null ? "" : coloring.look(value, cell.token)}${cell.sampled ? "" : " given"}${cell.image ? " image" : ""}${index === selected ? " chosen" : ""}`;
    element.dataset["cell"] = String(index);
    element.textContent = text;
    line.append(element);
  }
  return line;
}

/** The value of a cell: of its token, or the mean of its tokens. */
export function meanOf(coloring: Coloring, cell: Cell): number | null {
  if (!coloring.values) return null;
  if (cell.count === 1) return coloring.values[cell.token] ?? null;
  let sum = 0;
  let count = 0;
  for (let t = cell.token; t < cell.token + cell.count; t++) {
    const value = coloring.values[t];
    if (value === null || value === undefined) continue;
    sum += value;
    count++;
  }
  return count > 0 ? sum / count : null;
}
