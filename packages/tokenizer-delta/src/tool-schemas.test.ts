import type { ToolSchema } from "@cria/core";
import { describe, expect, it } from "vitest";
import { ChatTemplate } from "./index.js";
import { readTemplateTable } from "./matrix/template-table.js";
import { createLlamaTemplate, listBundledTemplates, readBundledTemplate } from "./testing/index.js";

/** Parameters as programs have them: templates often expect a type of each, and one alone. */
const parameters: Record<string, Record<string, unknown>> = {
  "no type": { a: {} },
  "a choice": { a: { anyOf: [{ type: "string" }, { type: "null" }] } },
  "two types": { a: { type: ["string", "null"], description: "A text." } },
  "values alone": { a: { enum: ["x", 1, null] } },
  "a list of objects": {
    a: { type: "array", items: { type: "object", properties: { b: { type: "integer" } }, required: ["b"] } },
  },
  "a list of anything": { a: { type: "array" } },
  "an object": { a: { type: "object", properties: { b: { type: "boolean" } }, required: ["b"] } },
  "a reference": { a: { $ref: "#/$defs/x" } },
  nothing: {},
};

/** Every kind of these renders, whether llama.cpp's engine can or not. */
const trained = ["ByteDance-Seed-OSS", "openai-gpt-oss-120b"];

/** The template does not render, adds to undefined values, or prints truth values, which the library writes in small letters. */
const others = [
  ...readTemplateTable("## Templates that do not render").map(([template]) => template!),
  "CohereForAI-c4ai-command-r-plus-tool_use",
  "GigaChat3-10B-A1.8B",
  "GigaChat3.1-10B-A1.8B",
];

describe("tools of every kind of parameter, against llama.cpp's own Jinja engine", () => {
  it.each(listBundledTemplates().filter((name) => !others.includes(name)))("%s", async (name) => {
    const source = readBundledTemplate(name);
    const template = new ChatTemplate(source, { bos_token: "<s>", eos_token: "</s>" });
    const llama = await createLlamaTemplate(source);
    for (const [kind, properties] of Object.entries(parameters)) {
      const schema = { type: "object" as const, properties, $defs: { x: { type: "string" } } };
      const tools: ToolSchema[] = [
        { type: "function", function: { name: "f", description: "d", parameters: schema as never } },
      ];
      const options = { tools, addGenerationPrompt: true, kwargs: { date_string: "26 Jul 2024" } };
      const messages = [{ role: "user" as const, content: "hi" }];
      let theirs: string;
      try {
        theirs = llama.render(template.makeVariables(messages, options));
      } catch {
        // It looks for no list in a list, for example, as Python does: nothing to compare with.
        if (trained.includes(name)) expect(template.render(messages, options), kind).toContain("f");
        continue;
      }
      expect(template.render(messages, options), kind).toBe(theirs);
    }
  });
});
