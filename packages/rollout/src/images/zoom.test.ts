import { type ChatMessage, listImages } from "@cria/core";
import { isLoaded } from "@cria/core/internal";
import { fakeImageFile } from "@cria/core/testing";
import { ImageZoomTool, tool } from "@cria/tools";
import { expect, it } from "vitest";
import { z } from "zod";
import { makeFakeRollout, makeRow } from "../testing/fake-rollout.js";

const call = (name: string, args: object) => `<tool_call>\n${JSON.stringify({ name, arguments: args })}\n</tool_call>`;
const imagesOf = ({ content }: ChatMessage) => listImages(content).map(({ image }) => image);

it("a policy zooms into the image of its prompt, and sees the region in the tool's answer", async () => {
  const { run } = makeFakeRollout({
    engine: { images: true },
    tools: [new ImageZoomTool()],
    multiTurn: { toolTimeoutS: 5 },
    reply: ({ turn }) =>
      turn === 0 ? call("image_zoom_in_tool", { bbox_2d: [10, 20, 58, 52], label: "a cat" }) : "a cat",
  });
  const row = makeRow({
    prompt: [{ role: "user", content: "<image>What is it?" }],
    images: [{ bytes: fakeImageFile(96, 96) }],
  });
  const [trajectory] = await run([row]);
  expect(trajectory!.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant"]);
  const [region] = imagesOf(trajectory!.messages[2]!);
  expect(region).toMatchObject({ width: 48, height: 32, mimeType: "image/png" });
  // Six by six vectors, and six, beside the marks of the model.
  expect(trajectory!.images!.map(({ length }) => length)).toEqual([38, 8]);
  expect(trajectory!.images![1]!.image).toBe(region);
});

it("a user's tool gets the images of its conversation, and none if the policy has no projector", async () => {
  const seen: unknown[] = [];
  const look = tool({
    name: "look",
    description: "Looks.",
    inputSchema: z.object({}),
    create: ({ images }) => images,
    execute: async (_, { state }) => {
      seen.push(state?.prompt.map(({ width, height }) => [width, height]));
      const [image] = state?.prompt ?? [];
      if (image) seen.push((await state!.decode(image)).rgb.length);
      return "done";
    },
  });
  const reply = ({ turn }: { turn: number }) => (turn === 0 ? call("look", {}) : "done");
  const row = makeRow({
    prompt: [{ role: "user", content: [{ type: "image", image: { bytes: fakeImageFile(20, 10) } }] }],
  });
  const options = { tools: [look], multiTurn: { toolTimeoutS: 5 }, reply };
  const [trajectory] = await makeFakeRollout({ ...options, engine: { images: true } }).run([row]);
  expect(imagesOf(trajectory!.messages[0]!).every(isLoaded)).toBe(true);
  await makeFakeRollout(options).run([makeRow()]);
  expect(seen).toEqual([[[20, 10]], 600, undefined]);
});
