import { Registry, ToolError } from "@cria/core";
import { importExport } from "../user-code/import-export.js";
import type { BaseInteraction } from "./base-interaction.js";
import { CodeExecutionInteraction } from "./code-execution-interaction.js";
import { CodeGameInteraction } from "./code-game-interaction.js";
import { Gsm8kInteraction } from "./gsm8k-interaction.js";
import { NumberGuessingInteraction } from "./number-guessing-interaction.js";
import { SimulatedUserInteraction } from "./simulated-user-interaction.js";

export type InteractionClass = new (config?: Record<string, unknown>, name?: string) => BaseInteraction;

/** By `class_name`. Built-in ones have our names; some also the Python paths of the field's shipped examples. */
export const interactionClasses = new Registry<InteractionClass>("interaction class", {
  "@cria/tools#Gsm8kInteraction": Gsm8kInteraction,
  "@cria/tools#NumberGuessingInteraction": NumberGuessingInteraction,
  "@cria/tools#CodeExecutionInteraction": CodeExecutionInteraction,
  "@cria/tools#CodeGameInteraction": CodeGameInteraction,
  "@cria/tools#SimulatedUserInteraction": SimulatedUserInteraction,
  "verl.interactions.gsm8k_interaction.Gsm8kInteraction": Gsm8kInteraction,
  "verl.interactions.collabllm_interation.CollabLLMInteraction": SimulatedUserInteraction,
});

/** One entry of an interaction config file. */
export interface InteractionConfigEntry {
  /** What rows call it. Default: the class's own name. */
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
 * start at `baseFolder`.
 * @throws ConfigError when a class cannot be loaded, ToolError when it is not an interaction or a name comes twice.
 */
export async function createInteractions(
  entries: readonly InteractionConfigEntry[],
  baseFolder: string,
  classes = interactionClasses,
): Promise<Map<string, BaseInteraction>> {
  const interactions = new Map<string, BaseInteraction>();
  for (const entry of entries) {
    const interactionClass =
      classes.find(entry.class_name) ??
      ((await importExport(entry.class_name, baseFolder, "class_name")) as InteractionClass);
    const interaction = construct(interactionClass, entry);
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

function construct(interactionClass: InteractionClass, entry: InteractionConfigEntry): BaseInteraction {
  const methods = ["startInteraction", "generateResponse", "calculateScore", "finalizeInteraction"] as const;
  const prototype = interactionClass.prototype as Partial<BaseInteraction> | undefined;
  const missing = methods.filter((method) => typeof prototype?.[method] !== "function");
  if (missing.length === 0) return new interactionClass(entry.config ?? {}, entry.name);
  throw new ToolError("is not an interaction", {
    code: "interaction/not-one",
    subject: `class_name "${entry.class_name}"`,
    expected: `a class with ${methods.join(", ")}`,
    received: `no ${missing.join(", ")}`,
    remedy: "extend BaseInteraction of @cria/tools",
  });
}
