import type { JsonSchema, ToolSchema } from "@cria/core";

/** A skill of an agent card in the A2A protocol, https://a2a-protocol.org. */
export interface A2aSkill {
  id: string;
  name: string;
  description: string;
  tags: string[];
  examples?: string[];
  inputModes?: string[];
  outputModes?: string[];
}

/** An entry of `capabilities.extensions` of an agent card. */
export interface A2aExtension {
  uri: string;
  description?: string;
  required?: boolean;
  params?: Record<string, unknown>;
}

/** The parts of an agent card that tools become. */
export interface A2aSkillSet {
  skills: A2aSkill[];
  extensions: A2aExtension[];
}

/** A skill has no place for parameters: this extension of the card holds their JSON Schema for each skill id. */
export const TOOL_PARAMETERS_EXTENSION = "urn:cria:a2a:tool-parameters:v1";

/** An OpenAI function schema as A2A skill, its parameters left out; `toA2aSkills` keeps them. */
export function toA2aSkill({ function: { name, description } }: ToolSchema): A2aSkill {
  return {
    id: name,
    name,
    description: description ?? "",
    tags: ["tool"],
    inputModes: ["application/json"],
    outputModes: ["text/plain"],
  };
}

/**
 * An A2A skill as OpenAI function schema. When its parameters are not known, it takes a message, as every A2A agent
 * does.
 */
export function fromA2aSkill(skill: Readonly<A2aSkill>, parameters?: JsonSchema): ToolSchema {
  return {
    type: "function",
    function: {
      name: skill.id,
      description: skill.description,
      parameters: structuredClone(parameters) ?? {
        type: "object",
        properties: { message: { type: "string", description: "What to ask of the agent." } },
        required: ["message"],
      },
    },
  };
}

/** Function schemas as the skills of an agent card, with the extension that holds their parameters. */
export function toA2aSkills(schemas: readonly ToolSchema[]): A2aSkillSet {
  const parameters = schemas.map((schema) => [schema.function.name, structuredClone(schema.function.parameters)]);
  return {
    skills: schemas.map(toA2aSkill),
    extensions: [
      {
        uri: TOOL_PARAMETERS_EXTENSION,
        description: "JSON Schema of the parameters of each skill, by its id.",
        required: false,
        params: Object.fromEntries(parameters),
      },
    ],
  };
}

/** The skills of an agent card as function schemas. */
export function fromA2aSkills({ skills, extensions }: Readonly<A2aSkillSet>): ToolSchema[] {
  const params = extensions.find(({ uri }) => uri === TOOL_PARAMETERS_EXTENSION)?.params ?? {};
  return skills.map((skill) =>
    fromA2aSkill(skill, Object.hasOwn(params, skill.id) ? (params[skill.id] as JsonSchema) : undefined),
  );
}
