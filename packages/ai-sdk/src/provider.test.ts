import { generateText, NoSuchModelError } from "ai";
import { describe, expect, it } from "vitest";
import { createProvider } from "./provider.js";
import { scriptChat } from "./testing/scripted-chat.js";

function open(failures = 0) {
  const counts = { opened: 0, disposed: 0 };
  const cria = createProvider({
    name: "policy",
    open: async () => {
      if (counts.opened++ < failures) throw new Error("no file");
      return { chat: scriptChat(() => "Hi!"), dispose: () => void counts.disposed++ };
    },
  });
  return { cria, counts };
}

describe("createProvider", () => {
  it("loads its model with the first request, once, and frees it", async () => {
    const { cria, counts } = open();
    const models = [cria(), cria("policy"), cria.languageModel("policy")];
    expect(counts.opened).toBe(0);
    const results = await Promise.all(models.map((model) => generateText({ model, prompt: "Hi" })));
    expect(results.map(({ text }) => text)).toEqual(["Hi!", "Hi!", "Hi!"]);
    expect(models[0]!.modelId).toBe("policy");
    await cria.dispose();
    await cria.dispose();
    expect(counts).toEqual({ opened: 1, disposed: 1 });
    await expect(generateText({ model: cria(), prompt: "Hi" })).rejects.toMatchObject({
      code: "config/disposed",
      subject: "provider of policy",
    });
  });

  it("tries again after it could not load", async () => {
    const { cria, counts } = open(1);
    await expect(cria.load()).rejects.toThrow("no file");
    await cria.load();
    expect(counts.opened).toBe(2);
  });

  it("has one model", () => {
    const { cria } = open();
    for (const find of [() => cria("other"), () => cria.embeddingModel("policy"), () => cria.imageModel("policy")])
      expect(find).toThrow(NoSuchModelError);
    expect(() => cria("other")).toThrow(expect.objectContaining({ modelId: "other" }));
  });

  it("a provider disposed while it loads frees its model, and rejects waiting calls", async () => {
    const { cria, counts } = open();
    const waiting = expect(generateText({ model: cria(), prompt: "Hi" })).rejects.toMatchObject({
      code: "config/disposed",
      subject: "provider of policy",
    });
    await cria.dispose();
    await waiting;
    expect(counts.disposed).toBe(counts.opened);
  });
});
