import { createHash } from "node:crypto";
import type { ChatMessage, ContentPart, LoadedImage, ToolSchema } from "@cria/core";
import type { Conversation } from "./conversations.js";

/** A different image for each name; nothing decodes it. */
export function makeImage(name: string, width = 24, height = 16): LoadedImage {
  const bytes = new TextEncoder().encode(name);
  return { bytes, hash: createHash("sha256").update(bytes).digest("hex"), width, height, mimeType: "image/png" };
}

/** Texts and images, in order. */
export function say(role: ChatMessage["role"], ...said: (string | LoadedImage)[]): ChatMessage {
  const content = said.map(
    (part): ContentPart => (typeof part === "string" ? { type: "text", text: part } : { type: "image", image: part }),
  );
  return { role, content };
}

export const zoom: ToolSchema = {
  type: "function",
  function: {
    name: "image_zoom_in",
    description: "Shows a part of the picture.",
    parameters: {
      type: "object",
      properties: { box: { type: "array", items: { type: "number" }, description: "x1, y1, x2, y2." } },
      required: ["box"],
    },
  },
};

const [cat, dog, crop, corner] = [makeImage("cat"), makeImage("dog", 48, 32), makeImage("crop"), makeImage("corner")];
const says = (content: string): ChatMessage => ({ role: "assistant", content });
const calls = (content: string, ...ids: string[]): ChatMessage => ({
  ...says(content),
  tool_calls: ids.map((id, i) => ({
    id,
    type: "function",
    function: { name: "image_zoom_in", arguments: { box: [i, 0, 8, 8] } },
  })),
});
const answers = (id: string, ...said: (string | LoadedImage)[]): ChatMessage => ({
  ...say("tool", ...said),
  name: "image_zoom_in",
  tool_call_id: id,
});

/**
 * Typical uses of pictures in rollouts, one difficulty each. Call ids have the nine characters that Mistral requires.
 */
export const visionConversations: Record<string, Conversation> = {
  "a picture": {
    messages: [say("user", cat, "What is it?"), says("A cat."), say("user", "Sure?"), says("Yes.")],
    tools: [],
  },
  "a picture alone": { messages: [say("user", cat), says("A cat."), say("user", dog), says("A dog.")], tools: [] },
  "pictures in text": {
    messages: [
      { role: "system", content: "Be terse." },
      say("user", "Compare ", cat, " with ", dog, cat, "."),
      says("One is a dog."),
      say("user", "And ", dog),
      says("A dog."),
    ],
    tools: [],
  },
  "a tool's picture": {
    messages: [
      say("user", dog, "Which digit is in the corner?"),
      calls("", "call00001"),
      answers("call00001", "The corner:", crop),
      says("Seven."),
    ],
    tools: [zoom],
  },
  "tools' pictures": {
    messages: [
      { role: "system", content: "Be terse." },
      say("user", dog, "Which digits?"),
      calls("I look.", "call00001", "call00002"),
      answers("call00001", crop),
      answers("call00002", corner),
      says("Seven, three."),
      say("user", "And here? ", corner),
      says("Three."),
    ],
    tools: [zoom],
  },
};
