import { describe, expect, it } from "vitest";
import { toContentPart, toContentParts, toImageSource } from "./content-parts.js";
import type { LoadedImage } from "./image-source.js";

const bytes = Uint8Array.of(1, 2, 3);
const data = "AQID";
const address = "https://example.org/a.png";
const inText = `data:image/png;base64,${data}`;
const loaded: LoadedImage = { hash: "ab", width: 2, height: 3, mimeType: "image/png", bytes };
const { bytes: _, ...record } = loaded;

describe("an image's source", () => {
  it.each<[what: string, given: unknown, expected: unknown]>([
    ["bytes", bytes, { bytes }],
    ["a buffer of Node", Buffer.from(bytes), { bytes: Buffer.from(bytes) }],
    ["an array buffer", bytes.buffer, { bytes }],
    ["a view of one", new DataView(bytes.buffer, 1), { bytes: bytes.subarray(1) }],
    ["a struct of bytes and null", { bytes, path: null }, { bytes }],
    ["a struct of bytes and a name", { bytes, path: "a.png" }, { bytes }],
    ["a struct of a path alone", { bytes: null, path: "a.png" }, { path: "a.png" }],
    ["an address", address, { url: address }],
    ["an URL", new URL(address), { url: address }],
    ["a data address", inText, { url: inText }],
    ["a file's address", "file:///tmp/a%20b.png", { path: "/tmp/a b.png" }],
    ["a file of another machine", "file://other/a.png", { url: "file://other/a.png" }],
    ["base64", data, { data }],
    ["MCP's", { type: "image", data, mimeType: "image/png" }, { data, mimeType: "image/png" }],
    ["Anthropic's base64", { type: "base64", media_type: "image/png", data }, { data, mimeType: "image/png" }],
    ["Anthropic's address", { type: "url", url: address }, { url: address }],
    ["OpenAI's", { url: inText, detail: "low" }, { url: inText }],
    ["Qwen's tools'", { image: address, min_pixels: 3136 }, { url: address }],
    ["a loaded one", loaded, loaded],
    ["a record of one", record, record],
    ["a record whose bytes are none", { ...record, bytes: { 0: 1 } }, null],
    ["a number", 3, null],
    ["nothing", null, null],
    ["an empty record", {}, null],
    ["a list", [bytes], null],
  ])("is read from %s", (_what, given, expected) => {
    expect(toImageSource(given)).toEqual(expected);
  });

  it("is a path if strings are paths, except addresses and values with a media type", () => {
    const asPath = (given: unknown) => toImageSource(given, { strings: "path" });
    expect(asPath("images/a.png")).toEqual({ path: "images/a.png" });
    expect(asPath({ image: "images/a.png" })).toEqual({ path: "images/a.png" });
    expect(asPath(address)).toEqual({ url: address });
    expect(asPath(inText)).toEqual({ url: inText });
    expect(asPath({ data, mimeType: "image/png" })).toEqual({ data, mimeType: "image/png" });
  });
});

describe("a part of a message", () => {
  it.each<[what: string, given: unknown, expected: unknown]>([
    ["a string", "hello", { type: "text", text: "hello" }],
    ["a text", { type: "text", text: "hello", providerOptions: {} }, { type: "text", text: "hello" }],
    ["the Responses API's text", { type: "input_text", text: "hello" }, { type: "text", text: "hello" }],
    ["an image", { type: "image", image: { bytes } }, { type: "image", image: { bytes } }],
    [
      "the AI SDK's bytes",
      { type: "image", image: bytes, mediaType: "image/png" },
      { type: "image", image: { bytes } },
    ],
    ["its base64", { type: "image", image: data }, { type: "image", image: { data } }],
    ["its address", { type: "image", image: new URL(address) }, { type: "image", image: { url: address } }],
    [
      "its file",
      { type: "file", data, mediaType: "image/png" },
      { type: "image", image: { data, mimeType: "image/png" } },
    ],
    ["its file of bytes", { type: "file", data: bytes, mediaType: "image/*" }, { type: "image", image: { bytes } }],
    [
      "its tools' image",
      { type: "image-data", data, mediaType: "image/png" },
      { type: "image", image: { data, mimeType: "image/png" } },
    ],
    [
      "its tools' medium",
      { type: "media", data, mediaType: "image/png" },
      { type: "image", image: { data, mimeType: "image/png" } },
    ],
    ["its tools' address", { type: "image-url", url: address }, { type: "image", image: { url: address } }],
    ["OpenAI's", { type: "image_url", image_url: { url: inText } }, { type: "image", image: { url: inText } }],
    ["the Responses API's", { type: "input_image", image_url: inText }, { type: "image", image: { url: inText } }],
    [
      "Anthropic's",
      { type: "image", source: { type: "base64", media_type: "image/png", data } },
      { type: "image", image: { data, mimeType: "image/png" } },
    ],
    ["a place without an image", { type: "image" }, null],
    ["a text without a text", { type: "text" }, null],
    ["another file", { type: "file", data, mediaType: "application/pdf" }, null],
    ["a video", { type: "video", video: "a.mp4" }, null],
    ["no part", 7, null],
  ])("is read from %s", (_what, given, expected) => {
    expect(toContentPart(given)).toEqual(expected);
  });

  it("is a path if strings are, unless its media type says base64", () => {
    const asPath = (given: unknown) => toContentPart(given, { strings: "path" });
    expect(asPath({ type: "image", image: "a.png" })).toEqual({ type: "image", image: { path: "a.png" } });
    expect(asPath({ type: "image", image: data, mediaType: "image/png" })).toEqual({
      type: "image",
      image: { data, mimeType: "image/png" },
    });
  });
});

it("a list of parts is refused by its first that is neither a text nor an image", () => {
  expect(toContentParts(["a", { type: "image", image: bytes }])).toHaveLength(2);
  expect(() => toContentParts(["a", { type: "video" }], { subject: "row 3" })).toThrow(
    expect.objectContaining({
      code: "data/bad-content",
      subject: "row 3, part 1",
      received: 'a part of type "video"',
    }),
  );
});
