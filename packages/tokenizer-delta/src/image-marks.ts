import { type ChatMessage, contentText, type ImageRecord, type ImageSource, TokenizerError } from "@cria/core";
import { showContent } from "@cria/core/internal";
import { makeMark } from "./make-mark.js";
import type { RenderedImage } from "./rendered-text.js";

/**
 * While a template prints a text, an image is a word: a secret, the hash of its file, and a letter that ends it. Users
 * cannot spell it, templates print it unchanged, and texts with the same image are equal.
 */
const SECRET = makeMark();
const END = "z";
const pattern = new RegExp(`${SECRET}([0-9a-f]*)${END}`, "g");

/** A part of a text: an image's mark, or the text between marks. */
export interface MarkCut {
  text: string;
  from: number;
  /** Hash of the image's file; null between marks. */
  hash: string | null;
}

/** The parts of a text, in order; none is empty. */
export function cutAtMarks(text: string): MarkCut[] {
  const cuts: MarkCut[] = [];
  let at = 0;
  const addText = (to: number) => {
    if (to > at) cuts.push({ text: text.slice(at, to), from: at, hash: null });
  };
  for (const { 0: mark, 1: hash, index } of text.matchAll(pattern)) {
    addText(index);
    cuts.push({ text: mark, from: index, hash: hash! });
    at = index + mark.length;
  }
  addText(text.length);
  return cuts;
}

/** Messages whose contents are texts, with a mark in place of each image; and the images, in order. */
export function markImages(messages: readonly ChatMessage[]): { messages: ChatMessage[]; images: ImageRecord[] } {
  const images: ImageRecord[] = [];
  const mark = (image: ImageSource) => {
    if (!("hash" in image)) throw notLoaded("an image whose file was not read");
    images.push(image);
    return markOf(image);
  };
  const marked = messages.map((message) =>
    Array.isArray(message.content)
      ? { ...message, content: contentText(message.content, (part) => mark(part.image)) }
      : message,
  );
  return { messages: marked, images };
}

export function markOf(image: Pick<ImageRecord, "hash">): string {
  return SECRET + image.hash + END;
}

export function notLoaded(received: string): TokenizerError {
  return new TokenizerError("is not in memory", {
    code: "tokenizer/image-not-loaded",
    subject: "image of a message",
    expected: "an image that loadImage has read",
    received,
    remedy: "put the result of loadImage into the message",
  });
}

/**
 * The places of a conversation's images in its rendering.
 * @throws TokenizerError unless it has each of them once, in order.
 */
export function findImages(text: string, images: readonly ImageRecord[]): RenderedImage[] {
  const found = cutAtMarks(text).filter(({ hash }) => hash !== null);
  if (found.length !== images.length || images.some(({ hash }, i) => hash !== found[i]!.hash)) {
    const received = found.map((mark) => showImages(mark.text, images)).join(", ");
    throw imagesLost(images.map(show).join(", ") || "no image", received || "no image");
  }
  return found.map((mark, i) => ({ from: mark.from, to: mark.from + mark.text.length, image: images[i]! }));
}

export function imagesLost(expected: string, received: string): TokenizerError {
  return new TokenizerError("does not print each image of this conversation once, in order", {
    code: "tokenizer/image-lost",
    subject: "chat template",
    expected,
    received,
    remedy: "use a template that prints all of these messages, or no images in messages that it does not print",
  });
}

/** A text for people, with a placeholder for each image. */
export function showImages(text: string, images: readonly ImageRecord[] = []): string {
  return text.replaceAll(pattern, (_, hash: string) => {
    const image = images.find((other) => other.hash === hash);
    return image ? show(image) : `[image ${hash.slice(0, 8)}]`;
  });
}

function show(image: ImageRecord): string {
  return showContent([{ type: "image", image }]);
}
