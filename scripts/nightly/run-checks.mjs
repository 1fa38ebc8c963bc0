// What the nightly scripts of named checks share: running each to its end, whatever fails.

/**
 * `check` runs one: what it throws is its failure, what it returns a remark. `checks` are their `{ name, ok, note, seconds }`;
 * those that `isWanted` refuses are left out.
 */
export function collectChecks(isWanted) {
  const checks = [];
  async function check(name, body) {
    if (!isWanted(name)) return;
    const start = performance.now();
    const entry = { name, ok: true, note: "" };
    try {
      entry.note = (await body()) ?? "";
    } catch (error) {
      entry.ok = false;
      entry.note = error.message;
    }
    entry.seconds = Math.round((performance.now() - start) / 100) / 10;
    checks.push(entry);
    console.log(`${entry.ok ? "ok    " : "FAILED"} ${name} (${entry.seconds} s)${entry.note ? `: ${entry.note}` : ""}`);
  }
  return { checks, check };
}
