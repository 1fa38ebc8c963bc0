import { makeStubImage, TinyModels } from "@cria/engine/testing";
import { afterAll, expect, it } from "vitest";
import { computeClass } from "./compute-class.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

it("the class of bits is that of images' vectors too, after any other images", async () => {
  const options = { path: await models.write(), lora: { rank: 2 }, contextSize: 128 };
  const find = (engine: Awaited<ReturnType<typeof models.load>>) => computeClass(engine, "a".repeat(64));
  const first = await models.loadWithStub({}, options);
  const found = await find(first);
  expect(found).toMatch(/^[0-9a-f]{16}$/);
  const second = await models.loadWithStub({}, options);
  second.images.place(makeStubImage(5));
  expect(await find(second)).toBe(found);
  // The same files on a machine that computes other vectors from them.
  expect(await find(await models.loadWithStub({}, options, { scale: 1.001 }))).not.toBe(found);
  const text = await models.load({}, options);
  expect(await find(text)).not.toBe(found);
  // A context without room for the picture: the rest is compared.
  const layout = () => [{ vectors: 127, columns: 0, rows: 0 }];
  expect(await find(await models.loadWithStub({}, options, { layout }))).toMatch(/^[0-9a-f]{16}$/);
});
