import { ConfigError } from "@cria/core";
import { parseYaml } from "@cria/tools/internal";
import { removeKey, writeKey } from "./raw-config.js";

/**
 * An override in Hydra's notation: `key.path=value`, `+key=value`, `++key=value`, and `~key`, which removes the key.
 */
export const OVERRIDE = /^(\+{0,2}|~)([A-Za-z_][\w@/-]*(?:\.[\w@/-]+)*)(=|$)/;

/** Sets or removes one key of a raw config. @throws ConfigError for a text that is no override. */
export function applyOverride(target: Record<string, unknown>, override: string): void {
  if (override.startsWith("~")) {
    const path = override.slice(1).split("=", 1)[0]!;
    if (path === "" || path.split(".").includes("")) throw refuse(override);
    removeKey(target, path);
    return;
  }
  const equals = override.indexOf("=");
  // Hydra's + and ++ add keys that its schema lacks; here they have no effect.
  const path = override.slice(0, equals).replace(/^\+{1,2}/, "");
  if (equals < 1 || path.split(".").includes("")) throw refuse(override);
  let value: unknown;
  try {
    value = parseYaml(override.slice(equals + 1));
  } catch (cause) {
    throw new ConfigError("does not parse", {
      code: "config/bad-override",
      subject: `argument "${override}"`,
      expected: "a YAML value after the =",
      received: (cause as Error).message.split("\n")[0],
      cause,
    });
  }
  writeKey(target, path, value);
}

function refuse(override: string): ConfigError {
  return new ConfigError("is not an override", {
    code: "config/bad-override",
    subject: `argument "${override}"`,
    expected: "key.path=value",
    received: override,
  });
}
