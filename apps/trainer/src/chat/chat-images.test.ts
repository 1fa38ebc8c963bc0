import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { encodePng, listImages } from "@cria/core";
import { FakeEngine, type FakeEngineOptions } from "@cria/core/testing";
import { makeTinyProjector, TinyModels } from "@cria/engine/testing";
import { defaultMultiTurn } from "@cria/rollout/internal";
import { DeltaTokenizer } from "@cria/tokenizer-delta";
import { ImageZoomTool } from "@cria/tools";
import { afterAll, describe, expect, it } from "vitest";
import { runChatCommand } from "./chat-commands.js";
import { InteractiveChat } from "./interactive-chat.js";
import { openChat } from "./open-chat.js";
import { chatByLines } from "./piped-chat.js";

const models = new TinyModels();
afterAll(() => models.cleanUp());

const writePicture = (name: string, size: number, grey = 0) => {
  const file = join(models.folder, name);
  writeFileSync(file, encodePng({ width: size, height: size, rgb: new Uint8Array(size * size * 3).fill(grey) }));
  return file;
};
const cat = writePicture("cat.png", 64);
const dog = writePicture("dog.png", 32, 9);

/** A model that answers with the number of images it sees. */
function open(
  engineOptions: Partial<FakeEngineOptions> = {},
  tools = new Map([["image_zoom_in_tool", new ImageZoomTool()]]),
) {
  const reply: FakeEngineOptions["reply"] = ({ text }) => {
    const call = { name: "image_zoom_in_tool", arguments: { bbox_2d: [0, 0, 32, 48] } };
    const last = text.split("<|im_start|>").at(-2)!;
    if (last.includes("Zoom")) return `<tool_call>\n${JSON.stringify(call)}\n</tool_call>`;
    return `${text.split("<|image_start|>").length - 1} seen`;
  };
  const engine = new FakeEngine({ reply, images: true, contextSize: 4096, ...engineOptions });
  const session = new InteractiveChat({
    engine,
    tokenizer: DeltaTokenizer.forModel(engine),
    tools,
    multiTurn: defaultMultiTurn,
    sampling: { temperature: 1, topP: 1, topK: 0, minP: 0, stop: [], maxTokensPerTurn: null, seed: 1 },
    system: null,
  });
  return { engine, session };
}

describe("/image", () => {
  it("adds the picture to the next message only; retry keeps it, undo removes it", async () => {
    const { session } = open();
    expect(await runChatCommand(session, "image", cat)).toMatch(
      /^\[image 64 x 64, [0-9a-f]{8}\], \d+ bytes, 18 tokens: /,
    );
    expect(await runChatCommand(session, "image", dog)).toMatch(/, 2 images in all$/);
    const turn = await session.say("What?");
    expect([turn.answer, turn.user]).toEqual(["2 seen", expect.stringMatching(/^\[image 64.*\]\[image 32.*\]What\?$/)]);
    expect((await session.say("And now?")).answer).toBe("2 seen");
    expect(session.conversation.map(({ content }) => listImages(content).length)).toEqual([2, 0, 0, 0]);
    session.undo();
    expect((await session.retry())!.answer).toBe("2 seen");
    expect(await runChatCommand(session, "undo", "")).toMatch(/^taken back: \[image 64/);
    expect((await session.say("Nothing?")).answer).toBe("0 seen");
    await session.close();
  });

  it("can be undone; a file that is not a picture is an error and changes nothing", async () => {
    const { session } = open();
    await runChatCommand(session, "image", cat);
    expect(await runChatCommand(session, "image", "-")).toBe("the next message has no image");
    await expect(runChatCommand(session, "image", "missing.png")).rejects.toMatchObject({
      code: "data/bad-image",
      subject: "missing.png",
    });
    await expect(runChatCommand(session, "image", import.meta.filename)).rejects.toMatchObject({
      code: "data/bad-image",
    });
    expect((await session.say("Nothing?")).answer).toBe("0 seen");
    const { session: blind } = open({ images: undefined });
    await expect(runChatCommand(blind, "image", cat)).rejects.toMatchObject({
      code: "data/no-projector",
      subject: expect.stringContaining("cat.png"),
      remedy: expect.stringContaining("--mmproj"),
    });
    await Promise.all([session.close(), blind.close()]);
  });

  it("gives the picture to tools, the tools' pictures to the model, and hashes to a script", async () => {
    const { session, engine } = open();
    let text = "";
    const write = (piece: string) => {
      text += piece;
    };
    await chatByLines(session, { input: Readable.from([`/image ${cat}\nZoom\n`]), write, json: true });
    const [, turn] = text
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(turn.answer).toBe("2 seen");
    expect(turn.calls[0].result).toMatch(/^\[image 32 x 48, [0-9a-f]{8}\]The region \[0,0,32,48\] of the image\.$/);
    expect(turn.messages[1].content[0].image).toEqual({
      hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      width: 32,
      height: 48,
      mimeType: "image/png",
    });
    await session.close();
    expect(engine.counts.disposed).toBe(engine.counts.created);
  });
});

it("the model uses the projector that the option names", async () => {
  const path = await models.write();
  const mmproj = join(models.folder, "tiny.mmproj.gguf");
  await makeTinyProjector(mmproj);
  const fetch = async (address: string) => address;
  const given = { target: path, mmproj, temperature: 0, seed: 1, maxTokens: 8, context: 256, threads: 1 };
  const chat = await openChat({ ...given, say: () => undefined, fetch });
  const session = new InteractiveChat(chat);
  await session.images.attach(dog);
  const { tokens } = await session.say("a?");
  const plain = new InteractiveChat(chat);
  const { tokens: without } = await plain.say("a?");
  // 32 x 32 pixels in squares of 8.
  expect(tokens.prefilled - without.prefilled).toBeGreaterThanOrEqual(16);
  await session.close();
  await plain.close();
  await chat.dispose();
});
