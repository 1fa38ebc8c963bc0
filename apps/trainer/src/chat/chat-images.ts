import {
  type ChatMessage,
  type ContentPart,
  DataError,
  type ImageEncoder,
  type LoadedImage,
  listImages,
  loadImage,
} from "@cria/core";
import { isLoaded, showContent, toContent } from "@cria/core/internal";
import type { ToolImages } from "@cria/tools";

type Content = ChatMessage["content"];

/** The images of a conversation with a user, who names files of this machine. */
export class ChatImages {
  private attached: LoadedImage[] = [];

  /** @param encoder undefined: the model reads only text. */
  constructor(private readonly encoder: ImageEncoder | undefined) {}

  /**
   * Puts an image before the text of the next message.
   * @returns the image, and the number of its tokens.
   * @throws DataError or EngineError for a file that is no image, or a model that sees none.
   */
  async attach(path: string): Promise<{ image: LoadedImage; tokens: number }> {
    const { encoder } = this;
    if (!encoder) {
      throw new DataError("cannot be seen", {
        code: "data/no-projector",
        subject: path,
        expected: "a model with a projector",
        received: "a model that reads only text",
        remedy: "name its projector: --mmproj mmproj.gguf",
      });
    }
    const image = await loadImage({ path }, { folder: process.cwd(), subject: path });
    await encoder.prepare(image);
    this.attached.push(image);
    return { image, tokens: encoder.countTokens(image) };
  }

  /** Number of images that wait for a message. */
  get waiting(): number {
    return this.attached.length;
  }

  /** A message of this text, with the images that were attached to it. */
  complete(text: string): Content {
    if (this.attached.length === 0) return text;
    return toContent([
      ...this.attached.map((image): ContentPart => ({ type: "image", image })),
      { type: "text", text },
    ]);
  }

  /** Forgets the attached images: a message has them now, or they are no longer wanted. */
  clear(): void {
    this.attached = [];
  }

  /** The images for tools: those of the user's newest message with images. */
  forTools(messages: () => readonly ChatMessage[]): ToolImages | undefined {
    const { encoder } = this;
    if (!encoder) return undefined;
    return {
      get prompt() {
        const shown = messages().findLast(({ role, content }) => role === "user" && listImages(content).length > 0);
        return listImages(shown?.content ?? "")
          .map(({ image }) => image)
          .filter(isLoaded);
      },
      load: (source) => loadImage(source, { folder: process.cwd() }),
      decode: (image) => encoder.decode(image),
    };
  }
}

/** An image in a line, for people. */
export function describeImage(image: LoadedImage, tokens: number): string {
  return `${showContent([{ type: "image", image }])}, ${image.bytes.length} bytes, ${tokens} tokens`;
}
