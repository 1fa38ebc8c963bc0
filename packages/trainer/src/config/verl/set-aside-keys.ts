import type { SetAside } from "../raw-config.js";
import {
  dropIgnoredKeys,
  dropPythonTargets,
  dropUnreadSections,
  type Refusal,
  removePendingKeys,
  renameKeys,
} from "./foreign-keys.js";
import { type StreamedOptions, translateStreamed } from "./streamed-training.js";
import { expandSwitches, moveValues, translateValues } from "./translate-values.js";
import { dropKeysOfNoTower, translatePixelLimits } from "./vision-keys.js";

export interface ForeignKeys {
  /** Keys without their full effect, each with the reason. */
  setAside: SetAside[];
  /** Keys that ask for missing features. */
  refusals: Refusal[];
}

/** Converts other frameworks' keys in a raw config to Cria's, in place, and reports those without their full effect. */
export function setAsideForeignKeys(raw: Record<string, unknown>, options: StreamedOptions = {}): ForeignKeys {
  expandSwitches(raw);
  const translated = [...dropPythonTargets(raw), ...renameKeys(raw), ...translatePixelLimits(raw)];
  const overruled = moveValues(raw);
  const streamed = translateStreamed(raw, options);
  const ofNoTower = dropKeysOfNoTower(raw);
  // Checked before sections are dropped: some of their keys must not be ignored.
  const refusals = removePendingKeys(raw);
  const dropped = [...ofNoTower, ...dropIgnoredKeys(raw), ...dropUnreadSections(raw)];
  const setAside = [...translated, ...overruled, ...streamed, ...dropped];
  return { setAside: [...setAside, ...translateValues(raw)], refusals };
}

/** One line per reason, with its keys. */
export function describeSetAside(setAside: readonly SetAside[]): string[] {
  const keys = new Map<string, string[]>();
  for (const { key, reason } of setAside) keys.set(reason, [...(keys.get(reason) ?? []), key]);
  return [...keys].map(([reason, named]) => `${named.join(", ")} has no effect: ${reason}`);
}
