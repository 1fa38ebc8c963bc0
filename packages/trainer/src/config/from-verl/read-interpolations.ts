import { isMapping, readKey, type SetAside } from "../raw-config.js";

/** References to other keys or environment variables: `${a.b}`, `${oc.select:a.b,default}`, `${oc.env:NAME,default}`. */
const INTERPOLATION = /^\$\{(?:(oc\.select|oc\.env):)?([\w.@/-]+)(?:,([^}]*))?\}$/;

/**
 * Replaces the interpolations in a YAML config by their values, in place. Interpolations of other kinds, or without
 * a value, are removed.
 * @returns the removed ones.
 */
export function readInterpolations(raw: Record<string, unknown>, env: Record<string, string | undefined>): SetAside[] {
  const removed: SetAside[] = [];
  const resolve = (value: unknown, depth: number): unknown => {
    if (typeof value !== "string" || !value.includes("${")) return value;
    const match = INTERPOLATION.exec(value);
    if (!match || depth > 8) return undefined;
    const [, kind, path, fallback] = match as unknown as [string, string?, string?, string?];
    const found = kind === "oc.env" ? env[path!] : readKey(raw, path!);
    if (found !== undefined && !(kind && found === null)) return resolve(found, depth + 1);
    if (fallback === undefined) return undefined;
    return fallback === "null" || fallback === "" ? null : /^-?[\d.]+$/.test(fallback) ? Number(fallback) : fallback;
  };
  const walk = (node: unknown, path: readonly string[]): void => {
    if (!isMapping(node)) return;
    for (const [key, value] of Object.entries(node)) {
      const resolved = resolve(value, 0);
      if (resolved === undefined && value !== undefined) {
        removed.push({ key: [...path, key].join("."), reason: `${String(value)} stands for nothing here` });
        delete node[key];
      } else if (resolved !== value) node[key] = resolved;
      walk(node[key], [...path, key]);
    }
  };
  walk(raw, []);
  return removed;
}
