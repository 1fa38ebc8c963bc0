/** Sizes of the maps, sets, lists and records in an object's fields, at any depth, by their paths. */
export function measureState(target: object): Map<string, number> {
  const sizes = new Map<string, number>();
  const seen = new Set<object>();
  const visit = (value: unknown, path: string, depth: number): void => {
    if (typeof value !== "object" || value === null || seen.has(value) || depth > 3) return;
    seen.add(value);
    if (value instanceof Map || value instanceof Set) return void sizes.set(path, value.size);
    if (Array.isArray(value)) return void sizes.set(path, value.length);
    if (ArrayBuffer.isView(value)) return;
    const entries = Object.entries(value);
    if (path !== "") sizes.set(path, entries.length);
    for (const [key, child] of entries) visit(child, path === "" ? key : `${path}.${key}`, depth + 1);
  };
  visit(target, "", 0);
  return sizes;
}

/** Collections that have grown: state that was kept after its instances were released. */
export function findGrown(before: ReadonlyMap<string, number>, after: ReadonlyMap<string, number>): string[] {
  return (
    [...after]
      .map(([path, size]) => ({ path, more: size - (before.get(path) ?? 0) }))
      // A record that has grown stands for everything inside it.
      .filter(({ path, more }, _, all) => more > 0 && !all.some((o) => o.more > 0 && path.startsWith(`${o.path}.`)))
      .map(({ path, more }) => `${path} (${more} more)`)
  );
}

const watched = ["Timeout", "TCPSocketWrap", "TCPServerWrap", "PipeWrap", "ProcessWrap", "Worker", "MessagePort"];

/** Open timers, sockets, processes and workers of this process, by kind. */
export function countHandles(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const kind of process.getActiveResourcesInfo()) {
    if (watched.includes(kind)) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  return counts;
}
