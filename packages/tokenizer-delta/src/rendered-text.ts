/** Text of a conversation that knows where others spelled control tokens. Places count UTF-16 units. */
export interface RenderedText {
  readonly text: string;
  /**
   * Places inside of control tokens' texts that a user or a tool has spelled; ascending. Text that has such a place
   * within it stays plain text.
   */
  readonly plainAt: readonly number[];
}

export function sliceRendered(rendered: RenderedText, from: number, to = rendered.text.length): RenderedText {
  const { text, plainAt } = rendered;
  const places = plainAt.length === 0 ? plainAt : plainAt.slice(findFirst(plainAt, from), findFirst(plainAt, to));
  return { text: text.slice(from, to), plainAt: places.map((at) => at - from) };
}

/** The first entry of an ascending list that is not below `value`; the list's length when all are. */
export function findFirst(ascending: readonly number[], value: number): number {
  let low = 0;
  let high = ascending.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ascending[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
