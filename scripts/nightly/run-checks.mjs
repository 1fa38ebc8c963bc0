// Shared by the nightly scripts of named checks: runs each check to its end, whether or not it fails.

/**
 * `check` runs one: an exception is its failure, a returned value a remark. `checks` are their `{ name, ok, note,
 * seconds }`; those that `isWanted` refuses are left out.
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

/** Fails a check. @throws Error */
export function expect(condition, message) {
  if (!condition) throw new Error(message);
}
