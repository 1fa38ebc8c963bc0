import type { ChatMessage, ToolSchema } from "@cria/core";
import { imagesLost } from "./image-marks.js";
import { makeMark } from "./make-mark.js";
import { mapTexts } from "./map-texts.js";

interface Given {
  tools?: readonly ToolSchema[];
}

/**
 * Renders messages whose images a template prints in its own notation, and replaces that text by the images' marks. If
 * a user or tool spells the template's text of an image, a word is put into it for the rendering and removed again, so
 * that only the template's own text becomes an image.
 * @param marks in the order of the messages.
 * @param imageText the template's text of an image.
 * @throws TokenizerError when the template does not print each of them once.
 */
export function placeMarks<Options extends Given>(
  messages: readonly ChatMessage[],
  options: Options,
  marks: readonly string[],
  imageText: RegExp,
  render: (messages: readonly ChatMessage[], options: Options) => string,
): string {
  const guard = makeMark();
  let guarded = false;
  const guardTexts = <T>(value: T): T =>
    mapTexts(value, (text) =>
      text.replaceAll(imageText, (spelled) => {
        guarded = true;
        return spelled[0] + guard + spelled.slice(1);
      }),
    ) as T;
  const given = guardTexts(messages);
  const tools = guardTexts(options.tools);
  const text = render(given, { ...options, tools });
  if (guarded && text.replaceAll(guard, "") !== render(messages, options))
    throw imagesLost(`texts that may spell ${imageText.source}`, "a rendering that depends on these texts");
  let placed = 0;
  const marked = text.replaceAll(imageText, () => marks[placed++] ?? "");
  if (placed !== marks.length) throw imagesLost(`${marks.length} times ${imageText.source}`, `${placed} times`);
  return marked.replaceAll(guard, "");
}
