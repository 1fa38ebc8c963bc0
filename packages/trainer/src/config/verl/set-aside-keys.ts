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
  /** Keys that have no effect, or less than they say, each with the reason. */
  setAside: SetAside[];
  /** Keys that ask for what does not exist yet. */
  refusals: Refusal[];
}

/** Brings a raw config with other frameworks' keys into Cria's form, in place, and tells what was not taken over. */
export function setAsideForeignKeys(raw: Record<string, unknown>, options: StreamedOptions = {}): ForeignKeys {
  expandSwitches(raw);
  const translated = [...dropPythonTargets(raw), ...renameKeys(raw), ...translatePixelLimits(raw)];
  moveValues(raw);
  const streamed = translateStreamed(raw, options);
  const ofNoTower = dropKeysOfNoTower(raw);
  // Of a section that is dropped some keys must not be ignored: they are looked at before.
  const refusals = removePendingKeys(raw);
  const dropped = [...ofNoTower, ...dropIgnoredKeys(raw), ...dropUnreadSections(raw)];
  const setAside = [...translated, ...streamed, ...dropped];
  return { setAside: [...setAside, ...translateValues(raw)], refusals };
}

/** One line for each reason, naming its keys. */
export function describeSetAside(setAside: readonly SetAside[]): string[] {
  const keys = new Map<string, string[]>();
  for (const { key, reason } of setAside) keys.set(reason, [...(keys.get(reason) ?? []), key]);
  return [...keys].map(([reason, named]) => `${named.join(", ")} has no effect: ${reason}`);
}
