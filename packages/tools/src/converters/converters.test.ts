import type { JsonSchema, ToolSchema } from "@cria/core";
import { ToolSchema as McpToolType } from "@modelcontextprotocol/sdk/types.js";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { findArgumentError } from "../validate-arguments.js";
import { fromA2aSkill, fromA2aSkills, toA2aSkills } from "./a2a.js";
import { fromMcpTool, type McpToolDescription, toMcpTool } from "./mcp.js";

fc.configureGlobal({ seed: Number(process.env.CRIA_SEED ?? 1) });

const leaf = fc.record(
  {
    type: fc.constantFrom("string", "number", "integer", "boolean", "null"),
    description: fc.string(),
    enum: fc.array(fc.string(), { minLength: 1 }),
    default: fc.jsonValue(),
  },
  { requiredKeys: ["type"] },
);
const { property } = fc.letrec<{ property: JsonSchema; array: JsonSchema; object: JsonSchema }>((tie) => ({
  property: fc.oneof({ maxDepth: 3 }, leaf as fc.Arbitrary<JsonSchema>, tie("array"), tie("object")),
  array: fc.record({ type: fc.constant("array"), items: tie("property") }),
  object: fc.record({ type: fc.constant("object"), properties: fc.dictionary(fc.string(), tie("property")) }),
}));
const parameters = fc.record(
  {
    type: fc.constant("object" as const),
    properties: fc.dictionary(fc.string(), property),
    required: fc.array(fc.string()),
    additionalProperties: fc.boolean(),
    $defs: fc.dictionary(fc.string(), property),
  },
  { requiredKeys: ["type", "properties"] },
);
const name = fc.string({ minLength: 1 });
const openAi: fc.Arbitrary<ToolSchema> = fc.record({
  type: fc.constant("function" as const),
  function: fc.record({ name, description: fc.string(), parameters }, { requiredKeys: ["name", "parameters"] }),
});
const described = openAi.filter((schema) => schema.function.description !== undefined);

describe("OpenAI function schema and MCP tool", () => {
  it("round trip from OpenAI, through schemas that the MCP SDK accepts", () => {
    fc.assert(
      fc.property(openAi, (schema) => {
        const tool = toMcpTool(schema);
        expect(McpToolType.safeParse(tool).success).toBe(true);
        expect(fromMcpTool(tool)).toEqual(schema);
      }),
    );
  });

  it("round trip from MCP", () => {
    const tool = fc.record(
      { name, description: fc.string(), inputSchema: parameters },
      {
        requiredKeys: ["name", "inputSchema"],
      },
    ) as fc.Arbitrary<McpToolDescription>;
    fc.assert(fc.property(tool, (given) => void expect(toMcpTool(fromMcpTool(given))).toEqual(given)));
  });

  it("parameters become an object schema, and a title stands in for a description", () => {
    const bare = { type: "function" as const, function: { name: "a", parameters: {} } };
    expect(toMcpTool(bare).inputSchema).toEqual({ type: "object" });
    const titled = { name: "a", title: "A tool", inputSchema: { type: "object" as const } };
    expect(fromMcpTool(titled).function.description).toBe("A tool");
  });

  it("shares nothing with its source", () => {
    const schema = {
      type: "function" as const,
      function: { name: "a", parameters: { type: "object", properties: {} } },
    };
    const tool = toMcpTool(schema);
    (tool.inputSchema.properties as Record<string, unknown>).x = 1;
    expect(schema.function.parameters.properties).toEqual({});
  });
});

describe("OpenAI function schema and A2A agent skill", () => {
  it("round trip, the parameters in an extension of the card, also as JSON", () => {
    const schemas = fc.uniqueArray(described, { selector: (schema) => schema.function.name, maxLength: 4 });
    fc.assert(
      fc.property(schemas, (given) => {
        const card = toA2aSkills(given);
        expect(fromA2aSkills(card)).toEqual(given);
        const sent = JSON.parse(JSON.stringify(given));
        expect(fromA2aSkills(JSON.parse(JSON.stringify(card)))).toEqual(sent);
        for (const skill of card.skills) {
          expect(Object.keys(skill)).toEqual(expect.arrayContaining(["id", "name", "description", "tags"]));
        }
      }),
    );
  });

  it("and MCP: three forms, one tool", () => {
    fc.assert(
      fc.property(described, (schema) => {
        const [back] = fromA2aSkills(toA2aSkills([fromMcpTool(toMcpTool(schema))]));
        expect(back).toEqual(schema);
      }),
    );
  });

  it("a foreign skill takes a message", () => {
    const skill = { id: "route", name: "Route planner", description: "Plans.", tags: ["maps"] };
    const schema = fromA2aSkill(skill);
    expect(schema.function.name).toBe("route");
    expect(findArgumentError(schema, { message: "to Bonn" })).toBeNull();
    expect(findArgumentError(schema, {})).toBe('missing argument "message"');
    expect(fromA2aSkills({ skills: [skill], extensions: [] })).toEqual([schema]);
  });
});
