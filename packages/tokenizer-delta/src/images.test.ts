import type { ChatMessage, LoadedImage } from "@cria/core";
import { FakeEngine, FakeTokenizer } from "@cria/core/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ChatTemplate, checkConversation, DeltaTokenizer, InferenceConversation } from "./index.js";
import { makeImage, say } from "./matrix/vision-conversations.js";
import { loadVisionCase, makeStubImages, visionTemplates } from "./matrix/vision-templates.js";

fc.configureGlobal({ seed: Number(process.env.CRIA_SEED ?? 1) });

const engine = new FakeEngine({ reply: () => "", images: true });
const { images } = engine;
const delta = DeltaTokenizer.forModel(engine);
const endOfTurn = engine.tokenizer.idOf("<|im_end|>");
const [cat, dog] = [makeImage("cat"), makeImage("dog")];
const place = (image: LoadedImage) => [...images!.place(image).tokenIds];
const text = (said: string) => [...engine.tokenizer.tokenize(said)];
const plain = (said: string) => [...engine.tokenizer.tokenize(said, { special: false })];
const says = (content: string): ChatMessage => ({ role: "assistant", content });
/** The error of a template that loses an image. */
const lost = (received: unknown = expect.any(String), expected: unknown = expect.any(String)) =>
  expect.objectContaining({ code: "tokenizer/image-lost", expected, received });

/** A template for a vocabulary of bytes, with special tokens that include `<image>` and `<|im_end|>`. */
function make(source: string): DeltaTokenizer {
  const tokenizer = new FakeTokenizer(["<image>", "<v>", "</v>"]);
  return new DeltaTokenizer(new ChatTemplate(source), tokenizer, {
    bosToken: null,
    endOfTurnTokens: [tokenizer.idOf("<|im_end|>")],
    images: makeStubImages(tokenizer, ["<v>", "</v>"]),
  });
}
/** Requires lists of parts; `image` is its text of an image. */
const listing = (image: string, before = "") =>
  `{% set n = namespace(count=0) %}{% for m in messages %}<|im_start|>{{ m.role }}: ${before}{% for p in m.content %}{% if p.type == 'image' %}{% set n.count = n.count + 1 %}${image}{% else %}{{ p.text }}{% endif %}{% endfor %}<|im_end|>{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant: {% endif %}`;
const imagesFirst =
  "{% for m in messages %}{{ m.role }}: {% for p in m.content | selectattr('type', 'equalto', 'image') %}<image>\n{% endfor %}{% for p in m.content | selectattr('type', 'equalto', 'text') %}{{ p.text }}{% endfor %}<|im_end|>{% endfor %}";

describe("images in messages", () => {
  it("get the tokens that the engine places, and texts beside them are tokenized apart", () => {
    const ids = delta.encodePrompt([say("user", "left ", cat, dog, " right")]);
    const [before, after] = ["<|im_start|>user\nleft ", " right<|im_end|>\n<|im_start|>assistant\n"];
    expect([...ids]).toEqual([...text(before), ...place(cat), ...place(dog), ...text(after)]);
    expect([...delta.encodeDelta([say("tool", cat)], true)]).toEqual([
      ...text("\n<|im_start|>user\n<tool_response>\n"),
      ...place(cat),
      ...text("\n</tool_response><|im_end|>\n<|im_start|>assistant\n"),
    ]);
    expect(delta.renderDelta([say("tool", cat)], true)).toContain("<tool_response>\n[image 24 x 16, 77af778b]\n<");
    expect(delta.render([say("user", "a", cat)])).toBe("<|im_start|>user\na[image 24 x 16, 77af778b]<|im_end|>\n");
  });

  it("are refused where the model has no projector", () => {
    const blind = DeltaTokenizer.forModel(new FakeEngine({ reply: () => "" }));
    const refused = expect.objectContaining({
      code: "config/no-projector",
      remedy: expect.stringContaining("model.mmproj"),
    });
    expect(() => blind.encodePrompt([say("user", cat)])).toThrow(refused);
    expect(() => blind.encodeDelta([say("tool", "x", cat)], true)).toThrow(refused);
    expect(() => blind.countPromptTokens([say("user", cat)])).toThrow(refused);
    expect(blind.encodePrompt([say("user", "no ", "image")])).toEqual(
      blind.encodePrompt([{ role: "user", content: "no image" }]),
    );
  });

  it("are counted without being placed, and without their files", () => {
    const { hash, width, height, mimeType } = makeImage("only a record", 100, 50);
    const messages: ChatMessage[] = [
      { role: "user", content: [{ type: "image", image: { hash, width, height, mimeType } }] },
    ];
    const expected = delta.encodePrompt([say("user", "")]).length + images!.countTokens({ width, height });
    expect(delta.countPromptTokens(messages)).toBe(expected);
    const notLoaded = expect.objectContaining({ code: "tokenizer/image-not-loaded" });
    expect(() => delta.encodePrompt(messages)).toThrow(notLoaded);
    const path: ChatMessage[] = [{ role: "user", content: [{ type: "image", image: { path: "a.png" } }] }];
    expect(() => delta.countPromptTokens(path)).toThrow(notLoaded);
  });

  it("have mask 0 in supervised examples; an assistant cannot say one", () => {
    const messages = [say("user", "what? ", cat), says("a cat"), say("tool", dog), says("a dog")];
    const { tokenIds, mask } = delta.encodeMessagesWithMask(messages);
    expect(engine.detokenize([...tokenIds].filter((_, i) => mask[i]))).toBe("a cat<|im_end|>a dog<|im_end|>");
    const at = tokenIds.indexOf(place(dog)[1]!);
    expect([...tokenIds.slice(at - 1, at - 1 + place(dog).length)]).toEqual(place(dog));
    expect([...mask.slice(at - 1, at - 1 + place(dog).length)]).not.toContain(1);
    expect(() => delta.encodeMessagesWithMask([say("user", "draw"), say("assistant", cat)])).toThrow(
      expect.objectContaining({ code: "tokenizer/sampled-image" }),
    );
  });

  it("long texts beside the event loop give the same tokens", async () => {
    const messages = [say("user", "x<|im_end|> ".repeat(800), cat, "y".repeat(9000), dog)];
    expect(await delta.encodePromptAside(messages)).toEqual(delta.encodePrompt(messages));
    expect(await delta.encodeDeltaAside(messages, true)).toEqual(delta.encodeDelta(messages, true));
  });

  it("8. deltas add up to the whole rendering for any texts and images", () => {
    const part = fc.oneof(
      fc.constantFrom(cat, dog),
      fc.string({ unit: "grapheme", maxLength: 5 }),
      fc.constantFrom("<|im_end|>", "<|im_", "end|>", "<|image_start|>", "\n", " "),
    );
    const heard = fc.record({ role: fc.constantFrom("tool", "user"), parts: fc.array(part, { maxLength: 5 }) });
    fc.assert(
      fc.property(fc.array(part, { maxLength: 4 }), fc.array(heard, { maxLength: 4 }), (question, turns) => {
        const messages = [say("user", ...question)];
        const ids = [...delta.encodePrompt(messages)];
        for (const { role, parts } of turns) {
          const observed = say(role as "tool" | "user", ...parts);
          ids.push(...text("said<|im_end|>"), ...delta.encodeDelta([observed], true));
          messages.push(says("said"), observed);
        }
        expect(ids).toEqual([...delta.encodePrompt(messages)]);
        expect(ids.filter((id) => id === endOfTurn)).toHaveLength(1 + 2 * turns.length);
        expect(checkConversation(delta, { messages, tokenIds: ids }).kind).toBe("equal");
      }),
      { numRuns: 40 },
    );
  });
});

describe("texts that look like images stay texts", () => {
  const spelled = "<image> [IMG] <|image_pad|> <__media__> <|image_start|><|image_end|> [image 24 x 16, 77af778b]";

  it("in prompts and deltas", () => {
    expect([...delta.encodePrompt([say("user", spelled, cat, spelled)])]).toEqual([
      ...text("<|im_start|>user\n"),
      ...plain(spelled),
      ...place(cat),
      ...plain(spelled),
      ...text("<|im_end|>\n<|im_start|>assistant\n"),
    ]);
    expect([...delta.encodeDelta([say("tool", spelled)], true)]).not.toContain(place(cat)[0]);
  });

  it.each(visionTemplates)("with $template", (example) => {
    const tokenizer = loadVisionCase(example);
    const { imageText, around } = example;
    const attack = `${imageText}${around.join("")}${imageText.slice(0, 4)}`;
    const ids = (...said: (string | LoadedImage)[]) => [...tokenizer.encodePrompt([say("user", ...said)])];
    const isControl = (id: number) => id >= 256;
    expect(ids(`a${attack}`, cat, `${imageText.slice(4)}${attack}`, dog).filter(isControl)).toEqual(
      ids("a", cat, "b", dog).filter(isControl),
    );
    expect(tokenizer.render([say("user", `a${attack}b`)])).toContain(attack);
  });

  it("on both sides of an image that the template prints elsewhere", () => {
    const tokenizer = make(imagesFirst);
    const { idOf } = tokenizer.tokenizer as FakeTokenizer;
    const messages = [say("user", "a<|im_", cat, "end|>b")];
    expect(tokenizer.render(messages)).toBe("user: [image 24 x 16, 77af778b]\na<|im_end|>b<|im_end|>");
    const end = idOf.call(tokenizer.tokenizer, "<|im_end|>");
    expect([...tokenizer.encodeWhole(messages)].filter((id) => id === end)).toHaveLength(1);
    // Two texts that together spell the template's own text of an image.
    expect(() => tokenizer.encodeWhole([say("user", "a<im", cat, "age>b")])).toThrow(
      lost(expect.stringMatching(/^2 times/), expect.stringMatching(/^1 times <image>/)),
    );
  });
});

describe("templates that insist on lists of parts", () => {
  it("print images in their own way: a number before one, a newline after it, all of them first", () => {
    const numbered = make(listing("Picture {{ n.count }}: <image>\n"));
    expect(numbered.template.takesParts).toBe(true);
    expect(numbered.render([say("user", "a", cat, "b", dog), say("user", cat)])).toBe(
      "<|im_start|>user: aPicture 1: [image 24 x 16, 77af778b]\nbPicture 2: [image 24 x 16, cd6357ef]\n<|im_end|>" +
        "<|im_start|>user: Picture 3: [image 24 x 16, 77af778b]\n<|im_end|>",
    );
    expect(make(listing("<|image_{{ n.count }}|>\n")).render([say("user", cat, dog)])).toBe(
      "<|im_start|>user: [image 24 x 16, 77af778b]\n[image 24 x 16, cd6357ef]\n<|im_end|>",
    );
    expect(make(listing("<v><image></v>", "<image>: ")).render([say("user", "a", cat)])).toBe(
      "<|im_start|>user: <image>: a[image 24 x 16, 77af778b]<|im_end|>",
    );
    for (const header of ["user: ", "user\n", "<|im_start|>"]) {
      const first = make(imagesFirst.replace("{{ m.role }}: ", header));
      expect(first.render([say("user", "a", cat, "b", dog)])).toBe(
        `${header}[image 24 x 16, 77af778b]\n[image 24 x 16, cd6357ef]\nab<|im_end|>`,
      );
      const bare = make(imagesFirst.replace("{{ m.role }}: ", header).replace("<image>\n", "<image>"));
      expect(bare.render([say("user", "a", cat)])).toBe(`${header}[image 24 x 16, 77af778b]a<|im_end|>`);
    }
  });

  it("replace their own begin and end of an image by the engine's tokens", () => {
    const tokenizer = make(listing("<v><image></v>"));
    const marks = tokenizer.encodeWhole([say("user", cat)]);
    const [start, end] = ["<v>", "</v>"].map((mark) => (tokenizer.tokenizer as FakeTokenizer).idOf(mark));
    expect([...marks].filter((id) => id === start)).toHaveLength(1);
    expect([...marks].filter((id) => id === end)).toHaveLength(1);
  });

  it("that know no images, or print them in ways that cannot be told, get a text in their place", () => {
    const texts = make(listing("").replace("{{ p.text }}", "{{ p.text | trim }}"));
    expect(texts.render([say("user", "a ", cat, " b")])).toBe(
      "<|im_start|>user: a[image 24 x 16, 77af778b]b<|im_end|>",
    );
    const changing = make(listing("{% if n.count == 1 %}<image>{% else %}<v>{% endif %}"));
    expect(changing.render([say("user", cat, dog)])).toContain("[image 24 x 16, 77af778b][image 24 x 16, cd6357ef]");
    // Only for tools: these templates print images of users only.
    const users = make(
      "{% for m in messages %}{{ m.role }}: {% for p in m.content %}{% if p.type == 'text' %}{{ p.text }}{% elif m.role == 'user' %}<image>{% endif %}{% endfor %}{{ m.tool_calls | default([]) | tojson }};{% endfor %}",
    );
    expect(users.render([say("user", cat), says("b"), say("tool", "c", dog)])).toBe(
      "user: [image 24 x 16, 77af778b][];assistant: b[];tool: c[image 24 x 16, cd6357ef][];",
    );
  });

  it("refuse texts whose length they print, where those spell an image", () => {
    const counting = make(listing("<image>").replace("{{ p.text }}", "{{ p.text | length }} {{ p.text }}"));
    expect(counting.render([say("user", "four", cat)])).toContain("4 four[image");
    expect(() => counting.render([say("user", "<image>", cat)])).toThrow(lost());
  });

  it("take texts of all roles, and calls", () => {
    const tokenizer = loadVisionCase(visionTemplates.find(({ template }) => template === "smolvlm")!);
    expect(
      tokenizer.render([{ role: "system", content: "s" }, say("user", "u"), says("a"), say("tool", "t")], [], true),
    ).toBe(
      "<|im_start|>System: s<end_of_utterance>\nUser: u<end_of_utterance>\nAssistant: a<end_of_utterance>\nTool: t<end_of_utterance>\nAssistant:",
    );
  });
});

describe("a template that loses an image is refused", () => {
  const messages = [say("user", "a", cat), says("b"), say("tool", "c", dog)];

  it.each([
    ["changes it", "{% for m in messages %}{{ m.content | upper }}{% endfor %}", "no image"],
    [
      "leaves out what tools say",
      "{% for m in messages if m.role != 'tool' %}{{ m.content }}{% endfor %}",
      "[image 24 x 16, 77af778b]",
    ],
    ["cuts texts", "{% for m in messages %}{{ m.content[:20] }}{% endfor %}", "no image"],
    [
      "prints a message twice",
      "{% for m in messages %}{{ m.content }}{% endfor %}{{ messages[0].content }}",
      "[image 24 x 16, 77af778b], [image 24 x 16, cd6357ef], [image 24 x 16, 77af778b]",
    ],
    [
      "turns the order around",
      "{% for m in messages | reverse %}{{ m.content }}{% endfor %}",
      "[image 24 x 16, cd6357ef], [image 24 x 16, 77af778b]",
    ],
  ])("a template that %s", (_, source, received) => {
    const tokenizer = make(source);
    expect(() => tokenizer.encodeWhole(messages)).toThrow(lost(received));
    expect(tokenizer.encodeWhole([say("user", "text"), says("alone")]).length).toBeGreaterThan(0);
  });

  it("a template that prints a limited number of images", () => {
    const tokenizer = make(listing("{% if n.count < 3 %}<image>{% endif %}"));
    expect(tokenizer.render([say("user", cat, dog)])).toContain("[image 24 x 16, 77af778b][image 24 x 16, cd6357ef]");
    expect(() => tokenizer.encodeWhole([say("user", cat, dog, cat)])).toThrow(
      lost(expect.stringMatching(/^2 times/), expect.stringMatching(/^3 times <image>/)),
    );
  });

  it("a template that loses it in a delta", () => {
    const mute = make(
      "{% for m in messages %}<|im_start|>{{ m.role }} {{ m.content if m.role != 'tool' else 'a result' }}<|im_end|>{% endfor %}",
    );
    expect(mute.encodeDelta([say("user", dog)], true).length).toBeGreaterThan(0);
    expect(() => mute.encodeDelta([say("tool", dog)], true)).toThrow(
      expect.objectContaining({ code: expect.stringMatching(/^tokenizer\/(not-incremental|image-lost)$/) }),
    );
  });

  it("errors and texts for people do not hold the private word of an image", () => {
    const shown = /\[image( 24 x 16,)? 77af778b\]/;
    const secret = /[0-9a-f]{64}/;
    const complaining = make("{{ raise_exception('bad: ' + messages[0].content) }}");
    const odd = make("{% for m in messages %}{{ m.content }}{% endfor %}{{ messages[0].content }}");
    for (const act of [
      () => complaining.encodeWhole([say("user", cat)]),
      () => odd.encodeDelta([say("user", cat)], true),
      () => odd.encodeWhole([say("user", cat)]),
    ]) {
      let message = "";
      try {
        act();
      } catch (error) {
        message = (error as Error).message;
      }
      expect(message).toMatch(shown);
      expect(message).not.toMatch(secret);
    }
  });
});

describe("the sanity check with images", () => {
  const messages = [say("user", "what? ", cat), says("a cat"), say("tool", "see ", dog, "!"), says("a dog")];
  const { tokenIds, mask } = delta.encodeMessagesWithMask(messages);

  it("9. the same file is the same image, another file is another one", () => {
    expect(checkConversation(delta, { messages, tokenIds, mask })).toEqual({ kind: "equal" });
    const copies = [say("user", "what? ", { ...cat }), ...messages.slice(1)];
    expect(checkConversation(delta, { messages: copies, tokenIds, mask })).toEqual({ kind: "equal" });
    const other = makeImage("another cat");
    const changed = [say("user", "what? ", other), ...messages.slice(1)];
    for (const given of [mask, undefined]) {
      const check = checkConversation(delta, { messages: changed, tokenIds, mask: given });
      expect(check.kind).toBe("mismatch");
      expect(check.expected).toMatch(/what\? \[image 24 x 16, [0-9a-f]{8}\]</);
      expect(check.received).toMatch(/what\? .*<\|im_end\|>/);
    }
    const both = [messages[0]!, messages[1]!, say("tool", "see ", cat, "!"), messages[3]!];
    expect(checkConversation(delta, { messages: both, tokenIds, mask }).kind).toBe("mismatch");
    const words = [say("user", "what? [image 24 x 16, 77af778b]"), ...messages.slice(1)];
    expect(checkConversation(delta, { messages: words, tokenIds, mask }).kind).toBe("mismatch");
  });

  it("9. an image missing in the tokens, or in the messages, is a mismatch", () => {
    const at = tokenIds.indexOf(place(dog)[1]!) - 1;
    const keep = (_: unknown, i: number) => i < at || i >= at + place(dog).length;
    const without = { tokenIds: tokenIds.filter(keep), mask: mask.filter(keep) };
    expect(checkConversation(delta, { messages, ...without })).toMatchObject({
      kind: "mismatch",
      expected: expect.stringContaining("see [image 24 x 16, cd6357ef]!"),
      received: expect.stringContaining("see !"),
    });
    const silent = [messages[0]!, messages[1]!, say("tool", "see !"), messages[3]!];
    expect(checkConversation(delta, { messages: silent, tokenIds, mask }).kind).toBe("mismatch");
  });

  it("9. a template that rewrites turns beside images is distinguished from faults", () => {
    const thinking = make(
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content.split('</think>')[-1] if m.role == 'assistant' and not loop.last else m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
    );
    const end = (thinking.tokenizer as FakeTokenizer).idOf("<|im_end|>");
    const turns = ["<think>hm</think>a cat", "a dog"];
    const heard = [say("user", "what? ", cat), say("tool", "see ", dog, "!")];
    const parts: [ArrayLike<number>, number][] = [
      [thinking.encodePrompt([heard[0]!]), 0],
      [[...thinking.tokenizer.tokenize(turns[0]!), end], 1],
      [thinking.encodeDelta([heard[1]!], true), 0],
      [[...thinking.tokenizer.tokenize(turns[1]!), end], 1],
    ];
    const played = {
      tokenIds: parts.flatMap(([ids]) => [...Array.from(ids)]),
      mask: parts.flatMap(([ids, value]) => Array<number>(ids.length).fill(value)),
    };
    const recorded = [heard[0]!, says(turns[0]!), heard[1]!, says(turns[1]!)];
    expect(checkConversation(thinking, { messages: recorded, ...played }).kind).toBe("rewritten");
    const faulty = [heard[0]!, says(turns[0]!), say("tool", "see ", cat, "!"), says(turns[1]!)];
    expect(checkConversation(thinking, { messages: faulty, ...played }).kind).toBe("mismatch");
  });
});

describe("rendering as in production with images", () => {
  it("keeps unchanged turns, and goes back to an image that changed", () => {
    const conversation = new InferenceConversation(delta);
    const question = say("user", "what? ", cat, " tell");
    const first = conversation.encodeTurn([question]);
    expect(first.tokenIds).toEqual(delta.encodePrompt([question]));
    conversation.addSampled([...text("a cat"), endOfTurn]);
    const answer = say("tool", dog);
    const second = conversation.encodeTurn([question, says("a cat"), answer]);
    expect(second.keep).toBe(first.tokenIds.length + 6);
    expect(second.tokenIds).toEqual(delta.encodeDelta([answer], true));
    expect(second.droppedSampled).toBe(0);
    const otherQuestion = say("user", "what? ", dog, " tell");
    const third = conversation.encodeTurn([otherQuestion, says("a cat"), answer]);
    expect(third.keep).toBeLessThanOrEqual(text("<|im_start|>user\nwhat? ").length);
    expect(third.contextIds).toEqual(delta.encodePrompt([otherQuestion, says("a cat"), answer]));
    expect(third.droppedSampled).toBe(6);
  });

  it("keeps an image when only the text after it changes", () => {
    const conversation = new InferenceConversation(delta);
    conversation.encodeTurn([say("user", "what? ", cat, "one")]);
    const turn = conversation.encodeTurn([say("user", "what? ", cat, "two")]);
    expect(turn.keep).toBe(text("<|im_start|>user\nwhat? ").length + place(cat).length);
    expect(turn.contextIds).toEqual(delta.encodePrompt([say("user", "what? ", cat, "two")]));
  });

  it("keeps images that end without a token of the vocabulary", () => {
    const tokenizer = loadVisionCase(visionTemplates.find(({ template }) => template === "llava-1.5-vicuna")!);
    const conversation = new InferenceConversation(tokenizer);
    const { tokenIds } = conversation.encodeTurn([say("user", "what? ", cat, " and ", dog, "one")]);
    const turn = conversation.encodeTurn([say("user", "what? ", cat, " and ", dog, "two")]);
    expect(turn.keep).toBe(tokenIds.length - "one ASSISTANT:".length);
  });
});
