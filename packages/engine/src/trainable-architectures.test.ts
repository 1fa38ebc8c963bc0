import { afterAll, describe, expect, it } from "vitest";
import { loadModel } from "./index.js";
import { type TinyModelOptions, TinyModels, textArchitectures } from "./testing/index.js";
import { checkTrainable, listTrainableArchitectures } from "./trainable-architectures.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

describe("checkTrainable", () => {
  it.each(textArchitectures)("%s can be trained, and is on the list", async (architecture) => {
    await checkTrainable(await models.write({ architecture }));
    expect(listTrainableArchitectures()).toContain(architecture);
  });

  const experts = { count: 4, used: 2 };
  const refused: [string, TinyModelOptions, number?][] = [
    ["experts of llama (Mixtral)", { architecture: "llama", experts }],
    ["experts of a hybrid (Granite 4 H-Tiny)", { architecture: "granitehybrid", experts }],
    ["a context beyond a window that llama.cpp leaves out", { architecture: "phi3", slidingWindow: 40 }, 41],
  ];
  it.each(refused)("%s: refused as loading would", async (_, tiny, contextSize) => {
    const path = await models.write(tiny);
    // It generates.
    await models.load({}, { path, ...(contextSize && { contextSize }) });
    const load = () => loadModel({ path, lora: { rank: 4 }, ...(contextSize && { contextSize }) });
    const error = await checkTrainable(path, contextSize).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: "engine/unsupported-architecture", subject: path });
    await expect(load()).rejects.toMatchObject({ message: (error as Error).message });
  });

  it("names a file that is not there", async () => {
    await expect(checkTrainable("/nowhere.gguf")).rejects.toMatchObject({ code: "engine/file-not-found" });
  });
});
