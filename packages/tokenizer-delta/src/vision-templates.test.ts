import { listImages } from "@cria/core";
import { showContent } from "@cria/core/internal";
import type { FakeTokenizer } from "@cria/core/testing";
import { describe, expect, it } from "vitest";
import { checkConversation, type DeltaTokenizer } from "./index.js";
import { comparePaths } from "./matrix/compare-paths.js";
import type { Conversation } from "./matrix/conversations.js";
import { expandNames, readTemplateTable } from "./matrix/template-table.js";
import { makeImage, say, visionConversations } from "./matrix/vision-conversations.js";
import {
  loadVisionCase,
  readVisionTemplate,
  type VisionTemplateCase,
  visionTemplates,
} from "./matrix/vision-templates.js";
import { parseTemplate } from "./parse-template.js";
import { defaultRenderLimits } from "./render-limits.js";
import { listBundledTemplates, readBundledTemplate } from "./testing/index.js";

/**
 * Plays every template of a vision model with every conversation with pictures. `docs/chat-templates.md` lists results that differ
 * from the whole rendering, or from the template's own text of lists of parts, with their reasons, and a listed case
 * that is equal fails too.
 */
const names = Object.keys(visionConversations);
const listed = new Map<string, string>();
const listedRows = readTemplateTable("## Differences with pictures");
for (const [template, which, outcome] of listedRows) {
  const kind = outcome === "other parts" ? "parts" : "delta";
  for (const name of expandNames(which!, names)) listed.set(`${template}/${name}/${kind}`, outcome!);
}

/**
 * The template's text for each message's parts in the form of Hugging Face's processors, with our word for an image
 * instead of the template's.
 */
function renderParts(
  example: VisionTemplateCase,
  tokenizer: DeltaTokenizer,
  { messages, tools }: Conversation,
): string {
  const variables = tokenizer.template.makeVariables(messages, { tools, addGenerationPrompt: true });
  const given = (variables["messages"] as { content: unknown }[]).map((message, i) => {
    const { content } = messages[i]!;
    if (!Array.isArray(content)) return message;
    return { ...message, content: content.map((part) => (part.type === "text" ? part : { type: "image" })) };
  });
  const program = parseTemplate(readVisionTemplate(example), defaultRenderLimits);
  const images = messages.flatMap(({ content }) => listImages(content)).map((part) => showContent([part]));
  let count = 0;
  const text = program
    .render({ ...variables, messages: given })
    .replaceAll(example.imageText, () => images[count++] ?? "too many");
  return count === images.length ? text : `${count} images: ${text}`;
}

/** The tokens of the images in messages, as placed by the engine. */
function listPlaced(tokenizer: DeltaTokenizer, { messages }: Conversation): number[] {
  const shown = messages.slice(
    0,
    messages.findLastIndex(({ role }) => role === "assistant"),
  );
  const images = shown.flatMap(({ content }) => listImages(content));
  return images.flatMap((part) => {
    const { images: places, text } = tokenizer.renderMarked([{ role: "user", content: [part] }]);
    const { from, to, image } = places[0]!;
    return [
      ...tokenizer.tokenize({ text: text.slice(from, to), plainAt: [], images: [{ from: 0, to: to - from, image }] }),
    ];
  });
}

describe.each(visionTemplates)("$template", (example) => {
  it("8. pictures in prompts, deltas, masks and the sanity check", () => {
    const tokenizer = loadVisionCase(example);
    const { vocabSize } = tokenizer.tokenizer as unknown as { vocabSize: number };
    const outcomes: Record<string, string> = {};
    const expected: Record<string, string> = {};
    for (const [name, conversation] of Object.entries(visionConversations)) {
      const { messages, tools } = conversation;
      const result = comparePaths(tokenizer, conversation);
      expected[name] = listed.get(`${example.template}/${name}/delta`) ?? "equal";
      outcomes[name] = result.outcome;
      if (outcomes[name] !== expected[name]) outcomes[name] += `: ${result.detail}`;
      if (result.outcome === "refused") continue;
      if (!result.inferenceEqual) outcomes[name] += ", and production rendering differs";
      expected[name] += `, ${listed.get(`${example.template}/${name}/parts`) ?? "same parts"}`;
      const same =
        example.imageText === "" ||
        tokenizer.render(messages, tools, true) === renderParts(example, tokenizer, conversation);
      outcomes[name] += same ? ", same parts" : ", other parts";
      const prompt = messages.slice(
        0,
        messages.findIndex(({ role }) => role === "assistant"),
      );
      expect(tokenizer.countPromptTokens(prompt, tools)).toBe(tokenizer.encodePrompt(prompt, tools).length);
      if (result.outcome !== "equal") continue;

      const { tokenIds, mask } = tokenizer.encodeMessagesWithMask(messages, tools);
      expect([...tokenIds]).toEqual(result.tokenIds.slice(0, tokenIds.length));
      expect([...tokenIds].filter((id, i) => id >= vocabSize && mask[i])).toEqual([]);
      const vectors = listPlaced(tokenizer, conversation).filter((id) => id >= vocabSize);
      expect([...tokenIds].filter((id) => id >= vocabSize)).toEqual(vectors);
      expect(vectors.length).toBeGreaterThan(5);
      expect(checkConversation(tokenizer, { messages, tools, tokenIds, mask })).toEqual({ kind: "equal" });
    }
    expect(outcomes).toEqual(expected);
  });
});

describe("all other templates of the release that speak of images", () => {
  const played = new Set(visionTemplates.map(({ template }) => template));
  const speaks = (name: string) => name === "MiMo-VL" || /image/i.test(readBundledTemplate(name));
  const others = listBundledTemplates().filter((name) => !played.has(name) && speaks(name));

  it("print pictures of users in prompts, of users and tools in deltas", () => {
    const [cat, dog] = [makeImage("cat"), makeImage("dog", 48, 32)];
    const pictures = Object.fromEntries(
      others.map((template) => {
        const ends = ["<|im_end|>"];
        const tokenizer = loadVisionCase({
          template,
          source: "release",
          imageText: "",
          around: ["", ""],
          added: [],
          ends,
        });
        const { vocabSize } = tokenizer.tokenizer as FakeTokenizer;
        const count = (ids: Int32Array) => ids.filter((id) => id >= vocabSize).length;
        const answer = { ...say("tool", "c", dog), name: "look", tool_call_id: "call00001" };
        return [
          template,
          [
            count(tokenizer.encodePrompt([say("user", "a", cat, dog)])),
            count(tokenizer.encodeDelta([say("user", cat, "b")], true)),
            count(tokenizer.encodeDelta([answer], true)),
          ],
        ];
      }),
    );
    expect(others.length).toBeGreaterThan(10);
    expect(pictures).toEqual(Object.fromEntries(others.map((template) => [template, [6 + 24, 6, 24]])));
  });
});

describe("docs/chat-templates.md", () => {
  it("lists the vision templates, how each takes contents, and a reason for each case", () => {
    const known = visionTemplates.map((example) => [
      example.template,
      example.source,
      loadVisionCase(example).template.takesParts ? "parts" : "text",
    ]);
    expect(readTemplateTable("## Templates of vision models").map((row) => row.slice(0, 3))).toEqual(known);
    for (const [template, , , why] of listedRows) {
      expect(known.map(([name]) => name)).toContain(template);
      expect(why!.length).toBeGreaterThan(20);
    }
  });
});
