/** A value as its reader wrote it. */
export function formatValue(value: unknown): string {
  if (value === undefined) return "nothing";
  if (typeof value === "number") return String(value);
  try {
    return JSON.stringify(value);
  } catch (cause) {
    // Circular, or deeper than the stack.
    return `what JSON cannot hold (${(cause as Error).message.split("\n", 1)[0]})`;
  }
}
