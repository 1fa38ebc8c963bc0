import type { LoadModelOptions } from "@cria/engine";
import type { ChatPoolOptions } from "@cria/rollout";

export interface CreateCriaOptions
  extends Pick<LoadModelOptions, "contextSize" | "maxSequences" | "device" | "threads" | "deterministic">,
    Pick<ChatPoolOptions, "sampling" | "limits" | "images" | "stop" | "mostTokens" | "onWarning"> {
  /** A GGUF file, or an address: hf:<owner>/<model>:<quantisation>. */
  model: string;
  /** A LoRA adapter on the model, also an address. */
  adapter?: string;
  /** The projector with which it sees images, also an address. Default: it reads text alone. */
  mmproj?: string;
  /** Name of the model, for the AI SDK; default: that of its file, without `.gguf`. */
  name?: string;
  /** How the model writes tool calls: a format, its name, or a parser. Default: as its template prints them. */
  format?: ChatPoolOptions["format"];
  /** With it the same requests in the same order give the same answers. Default: drawn. */
  seed?: number;
}
