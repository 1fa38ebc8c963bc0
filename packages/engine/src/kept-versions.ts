import type { PolicyEngine } from "@cria/core";
import type { NativeModel } from "./native-types.js";

const versions = new WeakMap<object, { native: NativeModel; version: number }>();

/** Notes which kept version of a model an engine's sequences are of. */
export function noteVersion(engine: object, native: NativeModel, version: number): void {
  versions.set(engine, { native, version });
}

/** The kept version of this model that an engine's sequences are of; undefined: none. */
export function versionOf(engine: Pick<PolicyEngine, "createSequence">, native: NativeModel): number | undefined {
  const kept = versions.get(engine);
  return kept?.native === native ? kept.version : undefined;
}
