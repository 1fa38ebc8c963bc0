import { showControls } from "../logic/visible-text.js";
import type { Cell } from "./cells.js";

/** The part of a cell on one line of the view. */
export interface Piece {
  /** Index of the cell. */
  cell: number;
  text: string;
}

/** Characters that take two columns of a monospaced font. */
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|[\u{1f300}-\u{1faff}]/gu;

/**
 * Cells in lines of at most `columns` characters. A newline ends a line; a cell that does not fit goes to the next
 * line, and a longer one spans several lines.
 */
export function layOut(cells: readonly Cell[], columns: number): Piece[][] {
  const rows: Piece[][] = [];
  let row: Piece[] = [];
  let width = 0;
  const endRow = () => {
    rows.push(row);
    row = [];
    width = 0;
  };
  cells.forEach((cell, index) => {
    for (const part of cutLines(cell.text)) {
      const length = measure(part.text);
      if (width > 0 && width + length > columns) endRow();
      if (length <= columns) {
        row.push({ cell: index, text: part.text });
        width += length;
      } else
        for (const chunk of cutChunks(part.text, columns)) {
          if (width > 0) endRow();
          row.push({ cell: index, text: chunk });
          width = measure(chunk);
        }
      if (part.ends) endRow();
    }
  });
  if (row.length > 0) endRow();
  return rows;
}

/** The displayed text of a cell, cut after newlines. An empty one has a stand-in to point at. */
function cutLines(text: string): { text: string; ends: boolean }[] {
  if (text === "") return [{ text: "◌", ends: false }];
  const lines = text.split("\n");
  return lines.flatMap((line, i) => {
    const ends = i < lines.length - 1;
    const shown = showControls(line).replaceAll("\t", "⇥   ") + (ends ? "⏎" : "");
    return shown === "" ? [] : [{ text: shown, ends }];
  });
}

function measure(text: string): number {
  return text.length + (text.match(WIDE)?.length ?? 0);
}

function cutChunks(text: string, columns: number): string[] {
  const chunks: string[] = [];
  let chunk = "";
  let width = 0;
  for (const character of text) {
    const size = measure(character);
    if (width + size > columns && chunk !== "") {
      chunks.push(chunk);
      chunk = "";
      width = 0;
    }
    chunk += character;
    width += size;
  }
  if (chunk !== "") chunks.push(chunk);
  return chunks;
}
