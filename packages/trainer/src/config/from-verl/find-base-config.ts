import { basename, dirname, join, resolve } from "node:path";
import type { ScriptReading } from "./read-script.js";
import { findYaml, isVerlsOwn, mergeConfig, readYamlConfig, tellMissing, type YamlConfig } from "./read-yaml-config.js";

/** Settings in which the configs of verl's asynchronous trainers differ from its defaults, by program. */
const ofPrograms: [program: RegExp, raw: (isOld: boolean) => Record<string, unknown>, note?: string][] = [
  [
    /fully_async/,
    () => ({
      async_training: { require_batches: 1, trigger_parameter_sync_step: 4, staleness_threshold: 0.1 },
      algorithm: { rollout_correction: { bypass_mode: true } },
    }),
  ],
  [
    /one_step_off/,
    (isOld) => ({
      trainer: { v1: { trainer_mode: "colocate_async", colocate_async: { num_warmup_batches: 1 } } },
      ...(isOld ? {} : { algorithm: { rollout_correction: { bypass_mode: true } } }),
    }),
    "conversations are one step old, unless the config says otherwise (trainer.v1.trainer_mode colocate_async)",
  ],
];

/** A config, with notes on settings that the script's program implies. */
interface BaseConfig extends YamlConfig {
  notes: string[];
}

/**
 * Finds the config that a script's overrides are applied to: the file of --config-name if it exists, else the known
 * settings of verl's own configs.
 * @param given names of YAML files given beside the script; they are read separately.
 */
export function findBaseConfig(script: ScriptReading, file: string, given: readonly string[]): BaseConfig {
  const { configName, configPath, program } = script;
  const [, makeRaw, note] = ofPrograms.find(([pattern]) => program !== null && pattern.test(program)) ?? [];
  // Before verl 0.9, the GPUs of rollouts had a section of their own.
  const isOld = script.overrides.some(({ text }) => /^\+*rollout\./.test(text));
  const notes = note === undefined ? [] : [`${program}: ${note}`];
  const known: BaseConfig = { raw: structuredClone(makeRaw?.(isOld) ?? {}), missing: [], files: [], notes };
  if (!configName || isVerlsOwn(configName.text)) return known;
  const name = basename(configName.text).replace(/\.ya?ml$/, "");
  if (given.some((each) => basename(each).replace(/\.ya?ml$/, "") === name)) return known;
  const found =
    configName.unknown.length > 0
      ? null
      : listFolders(configPath, program, file)
          .map((folder) => findYaml(folder, configName.text))
          .find((each) => each !== null);
  if (found) {
    const base = readYamlConfig(found);
    mergeConfig(known.raw, base.raw);
    return { ...known, ...base, raw: known.raw };
  }
  // Names of verl's own configs, whose keys are known.
  if (makeRaw && /^(fully_async|one_step_off)_ppo(_megatron)?_trainer$/.test(name)) return known;
  return { ...known, missing: [tellMissing(`--config-name=${configName.text}`)] };
}

/** Folders in which Hydra would look, and the corresponding folders if the script lies in a copy of its repository. */
function listFolders(configPath: ScriptReading["configPath"], program: string | null, file: string): string[] {
  const start = dirname(resolve(file));
  const above = [start];
  while (dirname(above.at(-1)!) !== above.at(-1)) above.push(dirname(above.at(-1)!));
  const module = program && !program.endsWith(".py") ? program.split(".").slice(0, -1).join("/") : "";
  // The unknown part of a path is the location of the repository; keep the part after it.
  const tail = configPath?.text.replace(/^.*(\$\([^)]*\)|`[^`]*`|\$\{[^}]*\}|\$\w+)\/?/, "");
  const relative = tail === undefined ? [join(module, "config")] : [tail, join(module, tail)];
  const exact = configPath && configPath.unknown.length === 0 ? [resolve(configPath.text)] : [];
  const roots = [process.cwd(), ...above];
  return [...exact, ...roots.flatMap((root) => relative.map((each) => join(root, each))), start, join(start, "config")];
}
