import type { SetAside } from "../raw-config.js";
import { dropIgnoredKeys, dropPythonTargets } from "./ignored-keys.js";
import { type Refusal, removePendingKeys } from "./pending-keys.js";
import { renameKeys } from "./renamed-keys.js";
import { expandSwitches, translateValues } from "./translate-values.js";
import { dropKeysOfNoTower, translatePixelLimits } from "./vision-keys.js";

export interface ForeignKeys {
  /** Keys that have no effect, or less than they say, each with the reason. */
  setAside: SetAside[];
  /** Keys that ask for what does not exist yet. */
  refusals: Refusal[];
}

/** Brings a raw config with other frameworks' keys into Cria's form, in place, and tells what was not taken over. */
export function setAsideForeignKeys(raw: Record<string, unknown>): ForeignKeys {
  expandSwitches(raw);
  const translated = [...dropPythonTargets(raw), ...renameKeys(raw), ...translatePixelLimits(raw)];
  const setAside = [...translated, ...dropKeysOfNoTower(raw), ...dropIgnoredKeys(raw)];
  const refusals = removePendingKeys(raw);
  return { setAside: [...setAside, ...translateValues(raw)], refusals };
}

/** One line for each reason, naming its keys. */
export function describeSetAside(setAside: readonly SetAside[]): string[] {
  const keys = new Map<string, string[]>();
  for (const { key, reason } of setAside) keys.set(reason, [...(keys.get(reason) ?? []), key]);
  return [...keys].map(([reason, named]) => `${named.join(", ")} has no effect: ${reason}`);
}
