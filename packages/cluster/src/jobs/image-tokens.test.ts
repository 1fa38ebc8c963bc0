import { ClusterError, type ImageSource, type LoadedImage, loadImage, type TrajectoryImage } from "@cria/core";
import { FakeEngine, fakeImageFile } from "@cria/core/testing";
import { findImages } from "@cria/rollout/internal";
import { describe, expect, it } from "vitest";
import { hideIds, showIds } from "./image-tokens.js";

const open = () => new FakeEngine({ reply: () => "", images: true });
const load = (bytes: Uint8Array): Promise<LoadedImage> => loadImage({ bytes } satisfies ImageSource);
/** Two vectors and four, between marks. */
const [cat, dog] = await Promise.all([load(fakeImageFile(32, 16)), load(fakeImageFile(32, 32, 1))]);

const [here, there] = [open(), open()];
// The ids differ in each process.
there.images!.place(dog);
const place = (engine: FakeEngine, image: LoadedImage) => [...engine.images!.place(image).tokenIds];
const makeConversation = (engine: FakeEngine) => {
  const tokenIds = Int32Array.of(65, ...place(engine, cat), 66, ...place(engine, dog), ...place(engine, cat));
  return { tokenIds, images: findImages(tokenIds, engine), numTurns: 1 };
};
const refuse = (expected: string, received?: unknown): never => {
  throw new ClusterError("is wrong", {
    code: "cluster/invalid-message",
    subject: "it",
    expected,
    received: String(received),
  });
};

describe("a conversation's images", () => {
  it("have no ids in a message, and at the other end those of that process", () => {
    const sent = hideIds(makeConversation(there), there);
    const { vocabSize } = there.info;
    expect([...sent.tokenIds].filter((id) => id < 0)).toEqual([-2, -3, -2, -3, -4, -5, -2, -3]);
    expect(sent.tokenIds.some((id) => id >= vocabSize)).toBe(false);
    const read = showIds(sent, here, refuse);
    expect(read).toEqual(makeConversation(here));
    expect(read.tokenIds).not.toEqual(makeConversation(there).tokenIds);
    const text = { tokenIds: Int32Array.of(65, 66) };
    expect(showIds(hideIds(text, there), here, refuse)).toBe(text);
  });

  it("may be cut at either end, as where conversations branch within them", () => {
    const cut = (engine: FakeEngine) => {
      const whole = place(engine, dog);
      const tokenIds = Int32Array.of(...whole.slice(2), 65, ...whole.slice(0, 3));
      return { tokenIds, images: findImages(tokenIds, engine) };
    };
    const sent = hideIds(cut(there), there);
    expect([...sent.tokenIds].filter((id) => id < 0)).toEqual([-3, -4, -5, -2, -3]);
    expect(showIds(sent, here, refuse)).toEqual(cut(here));
  });

  const change = (changes: Partial<TrajectoryImage>, index = 0) => {
    const sent = hideIds(makeConversation(there), there);
    return { ...sent, images: sent.images.map((image, i) => (i === index ? { ...image, ...changes } : image)) };
  };
  it.each<[string, () => { tokenIds: Int32Array; images?: readonly TrajectoryImage[] }, string]>([
    ["beyond the tokens", () => change({ length: 100 }), "1 to 101"],
    ["that are no file's tokens", () => change({ start: 0 }), " at 0, 4 tokens; "],
    ["of another file", () => change({ image: cat }, 1), "-4"],
    ["at vectors of nobody", () => change({ length: 2 }), "token 3 is -3"],
    ["without a place", () => ({ ...change({}), images: [] }), "token 2 is -2"],
    ["in text", () => ({ tokenIds: Int32Array.of(65, -1) }), "token 1 is -1"],
    ["of which only marks stand there", () => change({ start: 1, length: 1 }), "token 2 is -2"],
  ])("%s are refused", (_, make, received) => {
    const refusal = { code: "cluster/invalid-message", received: expect.stringContaining(received) };
    expect(() => showIds(make(), here, refuse)).toThrow(expect.objectContaining(refusal));
  });

  it("are refused by a model without a projector, and if the projector does not take them", () => {
    const sent = hideIds(makeConversation(there), there);
    expect(() => showIds(sent, new FakeEngine({ reply: () => "" }), refuse)).toThrow(
      expect.objectContaining({ code: "cluster/invalid-message", subject: "it", received: "3 images" }),
    );
    const picky = open();
    picky.images!.place = () => {
      throw new Error("too large");
    };
    expect(() => showIds(sent, picky, refuse)).toThrow(
      expect.objectContaining({ code: "cluster/invalid-message", subject: "it", received: "too large" }),
    );
  });
});
