/** A value in the notation of its author. */
export function formatValue(value: unknown): string {
  if (value === undefined) return "nothing";
  if (typeof value === "number") return String(value);
  try {
    return JSON.stringify(value);
  } catch (cause) {
    // Circular, or nested deeper than the stack.
    return `a value that JSON cannot represent (${(cause as Error).message.split("\n", 1)[0]})`;
  }
}
