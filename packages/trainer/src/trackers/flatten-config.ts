/** A nested config as dotted keys; lists become JSON. */
export function flattenConfig(value: Record<string, unknown>, prefix = ""): Record<string, string> {
  const flat: Record<string, string> = {};
  for (const [key, entry] of Object.entries(value)) {
    const path = prefix ? `${prefix}.${key}` : key;
    if (typeof entry === "object" && entry !== null && !Array.isArray(entry))
      Object.assign(flat, flattenConfig(entry as Record<string, unknown>, path));
    else flat[path] = typeof entry === "string" ? entry : (JSON.stringify(entry) ?? "");
  }
  return flat;
}
