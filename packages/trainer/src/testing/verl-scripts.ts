import { readFileSync } from "node:fs";
import { join } from "node:path";

const folder = join(import.meta.dirname, "..", "..", "fixtures", "verl-keys");
const read = <T>(name: string): T => JSON.parse(readFileSync(join(folder, `${name}.json`), "utf8"));

/** An example script of verl, as facts. */
export interface VerlScript {
  /** Path in verl's repository. */
  path: string;
  /** v0.7.0, v0.9, or "async" for those of its asynchronous trainers. */
  version: "v0.7.0" | "v0.9" | "async";
  /** The Python module that it starts. */
  program: string;
  /** Its --config-name. */
  configName: string | null;
  /** By key, as written; shell variables stay. */
  arguments: Record<string, string>;
}

interface Launches {
  configs: Record<string, Record<string, unknown>>;
  configNames: Record<string, string>;
}

const launches = read<Launches>("launches");

/** The keys of the YAML files that scripts start from, by name. */
export const verlBaseConfigs = launches.configs;

/** A script, or how it differs from another one: null leaves an argument out. */
interface StartedScript {
  like?: string;
  program?: string;
  configName?: string;
  arguments: Record<string, string | null>;
}

function resolveLikeness(
  scripts: Record<string, StartedScript>,
  path: string,
): Pick<VerlScript, "program" | "configName" | "arguments"> {
  const { like, configName = null, ...own } = scripts[path]!;
  const base = like === undefined ? null : resolveLikeness(scripts, like);
  const all = Object.entries({ ...base?.arguments, ...own.arguments });
  return {
    program: own.program ?? base!.program,
    configName,
    arguments: Object.fromEntries(all.flatMap(([key, text]) => (text === null ? [] : [[key, text]]))),
  };
}

/** All example scripts of the fixtures. */
export function listVerlScripts(): VerlScript[] {
  const ofVersion = (version: "v0.7.0" | "v0.9") =>
    Object.entries(read<Record<string, Record<string, string>>>(`scripts-${version}`)).map(([path, keys]) => ({
      path,
      version,
      program: `verl.trainer.${path.startsWith("examples/sft/") ? "fsdp_sft_trainer" : "main_ppo"}`,
      configName: launches.configNames[path] ?? null,
      arguments: keys,
    }));
  const started = read<Record<string, StartedScript>>("scripts-async");
  return [
    ...ofVersion("v0.7.0"),
    ...ofVersion("v0.9"),
    ...Object.keys(started).map((path) => ({ path, version: "async" as const, ...resolveLikeness(started, path) })),
  ];
}

/** True if the recorded value is incomplete: it was cut at a blank. */
export const isCut = (text: string) => /,$|[^'"\]]\)$/.test(text) || /^\$\(\([^)]*$/.test(text);

/** A shell script that passes these arguments. */
export function writeVerlScript(script: VerlScript): string {
  const path = script.version === "async" ? "config" : `"$(pwd)/examples/sglang_multiturn/config"`;
  const config = script.configName ? [`--config-path=${path}`, `--config-name='${script.configName}'`] : [];
  const words = Object.entries(script.arguments).map(([key, text]) => {
    if (isCut(text)) return `${key}=$not_in_the_facts`;
    return text.includes("$") ? `${key}="${text}"` : `${key}='${text.replaceAll("'", '"')}'`;
  });
  return `python3 -m ${[script.program, ...config, ...words].join(" \\\n  ")}\n`;
}
