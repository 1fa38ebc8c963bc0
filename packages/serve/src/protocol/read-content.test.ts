import type { ChatMessage, ImageSource } from "@cria/core";
import { describe, expect, it } from "vitest";
import { ResponseMemory } from "../model/response-memory.js";
import { weatherCall } from "../testing/make-answer.js";
import { readMessagesBody } from "./anthropic-request.js";
import { readChatBody } from "./openai-chat-request.js";
import type { ChatCall } from "./protocol.js";
import { readResponsesBody } from "./responses-request.js";

const data = "iVBORw0KGgo=";
const url = `data:image/png;base64,${data}`;
const web = "https://example.org/cat.png";
const image = (source: ImageSource) => ({ type: "image", image: source });
const text = (said: string) => ({ type: "text", text: said });

/** Expects each image under its place in the body, and in the messages. */
function expectImages({ request, images }: ChatCall, messages: object[], fields: string[]): void {
  expect(request.messages).toEqual(messages);
  expect(images.map(({ field }) => field)).toEqual(fields);
  const parts = request.messages.flatMap(({ content }: ChatMessage) => (typeof content === "string" ? [] : content));
  expect(parts.filter(({ type }) => type === "image")).toEqual(images.map(({ part }) => part));
  for (const { part } of images) expect(parts).toContain(part);
}

describe("images of a request", () => {
  it("stand among the texts of a user and a tool in chat completions", () => {
    const call = readChatBody({
      messages: [
        { role: "system", content: [text("Look"), text("well")] },
        {
          role: "user",
          content: [
            text("This"),
            text("and"),
            { type: "image_url", image_url: { url, detail: "low" } },
            text("this"),
            { type: "image_url", image_url: { url: web } },
          ],
        },
        { role: "assistant", content: null, tool_calls: [weatherCall] },
        { role: "tool", tool_call_id: "call-1", content: [{ type: "image_url", image_url: { url } }] },
      ],
    });
    expectImages(
      call,
      [
        { role: "system", content: "Look\nwell" },
        { role: "user", content: [text("This\nand"), image({ url }), text("this"), image({ url: web })] },
        { role: "assistant", content: "", tool_calls: [weatherCall] },
        { role: "tool", tool_call_id: "call-1", name: "weather", content: [image({ url })] },
      ],
      ["messages.1.content.2", "messages.1.content.4", "messages.3.content.0"],
    );
  });

  it("stand among the texts of a user and a function's output in responses", () => {
    const call = readResponsesBody(
      {
        input: [
          {
            role: "user",
            content: [
              { type: "input_text", text: "This" },
              { type: "input_image", image_url: url },
            ],
          },
          { type: "function_call", call_id: "call-1", name: "weather", arguments: '{"city":"Bern"}' },
          { type: "function_call_output", call_id: "call-1", output: [{ type: "input_image", image_url: url }] },
        ],
      },
      new ResponseMemory(),
    );
    expectImages(
      call,
      [
        { role: "user", content: [text("This"), image({ url })] },
        { role: "assistant", content: "", tool_calls: [weatherCall] },
        { role: "tool", tool_call_id: "call-1", name: "weather", content: [image({ url })] },
      ],
      ["input.0.content.1", "input.2.output.0"],
    );
    // The history, which the next call continues, has them too.
    expect(call.history).toEqual(call.request.messages.map((message) => ({ ...message, name: undefined })));
  });

  it("stand among the blocks of a user and a tool's result in messages", () => {
    const block = { type: "image", source: { type: "base64", media_type: "image/png", data } };
    const call = readMessagesBody({
      messages: [
        { role: "user", content: [block, text("What"), text("is it?")] },
        { role: "assistant", content: [{ type: "tool_use", id: "call-1", name: "weather", input: { city: "Bern" } }] },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "call-1", content: [text("Here"), block] },
            { type: "image", source: { type: "url", url: web } },
          ],
        },
      ],
    });
    const given = image({ data, mimeType: "image/png" });
    expectImages(
      call,
      [
        { role: "user", content: [given, text("What\nis it?")] },
        { role: "assistant", content: "", tool_calls: [weatherCall] },
        { role: "tool", tool_call_id: "call-1", name: "weather", content: [text("Here"), given] },
        { role: "user", content: [image({ url: web })] },
      ],
      ["messages.0.content.0", "messages.2.content.0.content.1", "messages.2.content.1"],
    );
  });

  it.each([
    ["a file of OpenAI's", { type: "input_image", file_id: "file-1" }],
    ["a file of Anthropic's", { type: "image", source: { type: "file", file_id: "file-1" } }],
    ["base64 alone", { type: "image_url", image_url: { url: undefined }, image: data }],
    ["base64 without its type", { type: "image", source: { type: "base64", data } }],
    ["nothing", { type: "image_url" }],
  ])("that are %s are refused", (_what, part) => {
    const read = () => readChatBody({ messages: [{ role: "user", content: [part] }] });
    expect(read).toThrow(expect.objectContaining({ status: 400, field: "messages.0.content.0" }));
    expect(read).toThrow(
      expect.objectContaining({
        code: "serve/bad-field",
        subject: "messages.0.content.0",
        expected: expect.stringContaining("data:image/png;base64"),
      }),
    );
  });

  it.each(["system", "assistant"])(
    "are refused in a message of the %s, and so is a part that is neither text nor image",
    (role) => {
      const read = (part: object, of: string) => () =>
        readChatBody({
          messages: [
            { role: of, content: [part] },
            { role: "user", content: "hi" },
          ],
        });
      const refusal = expect.objectContaining({ status: 400, field: "messages.0.content.0.type" });
      expect(read({ type: "image_url", image_url: { url } }, role)).toThrow(refusal);
      expect(read({ type: "input_audio", input_audio: {} }, "user")).toThrow(refusal);
    },
  );
});
