import { Registry, ToolError } from "@cria/core";
import { importExport } from "../user-code/import-export.js";
import type { BaseInteraction } from "./base-interaction.js";
import { CodeExecutionInteraction } from "./code-execution-interaction.js";
import { Gsm8kInteraction } from "./gsm8k-interaction.js";
import { SimulatedUserInteraction } from "./simulated-user-interaction.js";

export type InteractionClass = new (config?: Record<string, unknown>, name?: string) => BaseInteraction;

/**
 * Interaction classes by `class_name`. Built-in ones have our names; some also have the Python paths of other
 * frameworks' examples.
 */
export const interactionClasses = new Registry<InteractionClass>("interaction class", {
  "@cria/tools#Gsm8kInteraction": Gsm8kInteraction,
  "@cria/tools#CodeExecutionInteraction": CodeExecutionInteraction,
  "@cria/tools#SimulatedUserInteraction": SimulatedUserInteraction,
  "verl.interactions.gsm8k_interaction.Gsm8kInteraction": Gsm8kInteraction,
  "verl.interactions.collabllm_interation.CollabLLMInteraction": SimulatedUserInteraction,
});

/** One entry of an interaction config file. */
export interface InteractionConfigEntry {
  /** The name in rows. Default: the class's name. */
  name?: string;
  class_name: string;
  config?: Record<string, unknown>;
}

/** Makes a class available to every run as `class_name`; it goes before modules of that name. */
export function registerInteractionClass(className: string, interactionClass: InteractionClass): void {
  interactionClasses.register(className, interactionClass);
}

/**
 * Makes the interactions of a config, by name. `class_name` is a name in `classes` or `module#Export`; relative modules
 * start at `baseFolder`. The export is a class, an `interaction()`, or a function `(config, name)` that makes one.
 * @throws ConfigError when a class cannot be loaded, ToolError when it is not an interaction or a name comes twice.
 */
export async function createInteractions(
  entries: readonly InteractionConfigEntry[],
  baseFolder: string,
  classes = interactionClasses,
): Promise<Map<string, BaseInteraction>> {
  const interactions = new Map<string, BaseInteraction>();
  for (const entry of entries) {
    const target = classes.find(entry.class_name) ?? (await importExport(entry.class_name, baseFolder, "class_name"));
    const interaction = await make(target, entry);
    if ([...interactions.values()].includes(interaction)) {
      throw new ToolError("is in two entries", {
        code: "interaction/duplicate",
        subject: `class_name "${entry.class_name}"`,
        expected: "a separate object for each entry",
        remedy: "export a function (config) => interaction({...})",
      });
    }
    if (entry.name !== undefined) interaction.name = entry.name;
    if (interactions.has(interaction.name)) {
      throw new ToolError("is defined twice", {
        code: "interaction/duplicate",
        subject: `interaction "${interaction.name}"`,
        remedy: "give each interaction its own name",
      });
    }
    interactions.set(interaction.name, interaction);
  }
  return interactions;
}

const methods = ["startInteraction", "generateResponse", "calculateScore", "finalizeInteraction"] as const;

/** @param target a class, a function that makes an interaction, or an interaction. */
async function make(
  target: unknown,
  { class_name, config = {}, name }: InteractionConfigEntry,
): Promise<BaseInteraction> {
  const fail = (summary: string, details: { expected: string; received: string; remedy: string }) =>
    new ToolError(summary, { code: "interaction/not-one", subject: `class_name "${class_name}"`, ...details });
  if (isClass(target)) {
    const missing = listMissing(target.prototype);
    if (missing.length === 0) return new target(config, name);
    const expected = `a class with ${methods.join(", ")}`;
    const remedy = "extend BaseInteraction of @cria/tools";
    throw fail("is not an interaction", { expected, received: `no ${missing.join(", ")}`, remedy });
  }
  const isFactory = typeof target === "function";
  const expected = "an interaction, its class, or a function that makes one";
  const remedy = "export interaction({...}) of @cria/tools";
  let made: unknown = target;
  if (isFactory) {
    try {
      made = await target(config, name);
    } catch (cause) {
      throw fail("is not an interaction", { expected, received: `a function that throws ${cause}`, remedy });
    }
  }
  const missing = listMissing(made);
  if (missing.length > 0) {
    const received = isFactory ? "a function that returns something else" : typeof target;
    throw fail("is not an interaction", { expected, received, remedy });
  }
  if (isFactory || Object.keys(config).length === 0) return made as BaseInteraction;
  throw fail("takes no config", {
    expected: "no config: the export is a finished interaction",
    received: `config: ${JSON.stringify(config)}`,
    remedy: "export a function (config) => interaction({...}) that reads it",
  });
}

/** True also for a class compiled to a function. */
function isClass(value: unknown): value is InteractionClass {
  if (typeof value !== "function") return false;
  return (
    listMissing(value.prototype).length === 0 || Object.getOwnPropertyDescriptor(value, "prototype")?.writable === false
  );
}

/** Checks the shape, not instanceof: a user's module may have imported another copy of this package. */
function listMissing(value: unknown): string[] {
  const interaction = value as Partial<BaseInteraction> | null | undefined;
  return methods.filter((method) => typeof interaction?.[method] !== "function");
}
