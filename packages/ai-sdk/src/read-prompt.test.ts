import type { LanguageModelV3Prompt, LanguageModelV3ToolResultPart } from "@ai-sdk/provider";
import { describe, expect, it } from "vitest";
import { readPrompt } from "./read-prompt.js";

const result = (output: LanguageModelV3ToolResultPart["output"], toolCallId = "a"): LanguageModelV3ToolResultPart => ({
  type: "tool-result",
  toolCallId,
  toolName: "f",
  output,
});
const readOutput = (output: LanguageModelV3ToolResultPart["output"]) =>
  readPrompt([{ role: "tool", content: [result(output)] }])[0]!.content;

describe("readPrompt", () => {
  it("reads every kind of a tool's result", () => {
    expect(readOutput({ type: "text", value: "x" })).toBe("x");
    expect(readOutput({ type: "error-text", value: "bad" })).toBe("bad");
    expect(readOutput({ type: "json", value: { a: [1, null] } })).toBe('{"a":[1,null]}');
    expect(readOutput({ type: "error-json", value: "bad" })).toBe('"bad"');
    expect(readOutput({ type: "execution-denied", reason: "no" })).toBe("no");
    expect(readOutput({ type: "execution-denied" })).toBe("Tool execution denied.");
    const value = [
      { type: "text" as const, text: "see" },
      { type: "file-data" as const, data: "", mediaType: "audio/wav" },
      { type: "file-url" as const, url: "https://example.org" },
    ];
    expect(readOutput({ type: "content", value })).toBe("see\n[file-data: audio/wav]\n[file-url]");
  });

  it("reads parts of text, and files that are text", () => {
    const prompt: LanguageModelV3Prompt = [
      {
        role: "user",
        content: [
          { type: "text", text: "read" },
          { type: "file", mediaType: "text/plain", data: new TextEncoder().encode("this") },
          { type: "file", mediaType: "application/json", data: Buffer.from("[1]").toString("base64") },
        ],
      },
    ];
    expect(readPrompt(prompt)).toEqual([{ role: "user", content: "read\nthis\n[1]" }]);
  });

  it("reads images in every form, among the texts of users and tools", () => {
    const bytes = Uint8Array.of(1, 2, 3);
    const url = "https://example.org/a.png";
    const image = (source: object) => ({ type: "image", image: source });
    expect(
      readPrompt([
        {
          role: "user",
          content: [
            { type: "text", text: "a" },
            { type: "text", text: "b" },
            { type: "file", mediaType: "image/png", data: bytes },
            { type: "file", mediaType: "image/*", data: "AQID" },
            { type: "file", mediaType: "image/png", data: new URL(url) },
          ],
        },
      ])[0]!.content,
    ).toEqual([
      { type: "text", text: "a\nb" },
      image({ bytes }),
      image({ data: "AQID", mimeType: "image/*" }),
      image({ url }),
    ]);
    const value = [
      { type: "image-data" as const, data: "AQID", mediaType: "image/png" },
      { type: "file-data" as const, data: "AQID", mediaType: "image/png" },
      { type: "image-url" as const, url },
      { type: "text" as const, text: "see" },
    ];
    const data = image({ data: "AQID", mimeType: "image/png" });
    expect(readOutput({ type: "content", value })).toEqual([data, data, image({ url }), { type: "text", text: "see" }]);
  });

  it("refuses other files", () => {
    const read = (mediaType: string, data: Uint8Array | URL) => () =>
      readPrompt([{ role: "user", content: [{ type: "file", mediaType, data }] }]);
    expect(read("audio/wav", new Uint8Array())).toThrow(
      expect.objectContaining({ functionality: "files of type audio/wav" }),
    );
    expect(read("text/plain", new URL("https://example.org"))).toThrow(
      expect.objectContaining({ functionality: "files by URL" }),
    );
  });

  it("results of tools that the provider ran follow the message; approvals add nothing", () => {
    expect(
      readPrompt([
        {
          role: "assistant",
          content: [
            { type: "tool-call", toolCallId: "a", toolName: "f", input: { x: 1 }, providerExecuted: true },
            result({ type: "text", value: "1" }),
            { type: "text", text: "so" },
          ],
        },
        { role: "tool", content: [{ type: "tool-approval-response", approvalId: "1", approved: true }] },
      ]),
    ).toEqual([
      {
        role: "assistant",
        content: "so",
        tool_calls: [{ id: "a", type: "function", function: { name: "f", arguments: '{"x":1}' } }],
      },
      { role: "tool", name: "f", tool_call_id: "a", content: "1" },
    ]);
  });

  it("puts results in the order of the calls, also from several messages; unknown ones last", () => {
    const call = (toolCallId: string) => ({ type: "tool-call" as const, toolCallId, toolName: "f", input: {} });
    const text = (id: string) => result({ type: "text", value: id }, id);
    const messages = readPrompt([
      { role: "assistant", content: [call("a"), call("b")] },
      { role: "tool", content: [text("x"), text("b")] },
      { role: "tool", content: [text("a")] },
      { role: "user", content: [{ type: "text", text: "and?" }] },
    ]);
    expect(messages.slice(1).map(({ content }) => content)).toEqual(["a", "b", "x", "and?"]);
  });
});
