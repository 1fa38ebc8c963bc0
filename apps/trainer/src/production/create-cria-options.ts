import type { LoadModelOptions } from "@cria/engine";
import type { ChatPoolOptions } from "@cria/rollout";

export interface CreateCriaOptions
  extends Pick<LoadModelOptions, "contextSize" | "maxSequences" | "device" | "threads" | "deterministic">,
    Pick<ChatPoolOptions, "sampling" | "limits" | "images" | "stop" | "mostTokens" | "onWarning"> {
  /** A GGUF file, or an address: hf:<owner>/<model>:<quantisation>. */
  model: string;
  /** A LoRA adapter on the model, also an address. */
  adapter?: string;
  /** Path or address of the projector with which the model sees images. Default: it reads only text. */
  mmproj?: string;
  /** Name of the model, for the AI SDK; default: that of its file, without `.gguf`. */
  name?: string;
  /** Tool-call format of the model: a format, its name, or a parser. Default: the one that its template prints. */
  format?: ChatPoolOptions["format"];
  /** With a seed, the same requests in the same order give the same answers. Default: random. */
  seed?: number;
}
