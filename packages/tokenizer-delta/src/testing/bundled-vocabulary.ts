import { readFileSync } from "node:fs";
import type { SpecialToken } from "@cria/core";
import type { Llama } from "node-llama-cpp";
import type { TextTokenizer } from "../text-tokenizer.js";
import { unpackBundledVocabulary } from "./llama-bundle.js";

/** The used part of node-llama-cpp's addon: the same llama.cpp as the engine's, without weights. */
interface Bindings {
  AddonModel: new (path: string, options: { addonExports: Bindings; vocabOnly: boolean }) => NativeVocabulary;
  AddonJinjaRenderer: new (template: string) => { render(variables: Record<string, unknown>): string };
}

interface NativeVocabulary {
  init(): Promise<boolean>;
  dispose(): Promise<void>;
  tokenize(text: string, special: boolean): Uint32Array;
  detokenize(tokens: Uint32Array, special: boolean): string;
  getTokenString(token: number): string;
  getTokenAttributes(token: number): number;
  tokenBos(): number;
  shouldPrependBosToken(): boolean;
}

let llama: Promise<Llama> | undefined;

/** Its own model loader reads each file twice and estimates memory first, which takes seconds; this takes 0.3 s. */
async function getBindings(): Promise<Bindings> {
  llama ??= loadLlama();
  return ((await llama) as unknown as { _bindings: Bindings })._bindings;
}

/** Loaded on first use: it takes half a second, which readers of only a template need not wait for. */
async function loadLlama(): Promise<Llama> {
  const { getLlama } = await import("node-llama-cpp");
  return getLlama({ gpu: false, build: "never", maxThreads: 1, logLevel: "error" as never });
}

/** llama.cpp's own Jinja engine for one template. */
export async function createLlamaTemplate(
  source: string,
): Promise<{ render(variables: Record<string, unknown>): string }> {
  const { AddonJinjaRenderer } = await getBindings();
  return new AddonJinjaRenderer(source);
}

/** llama.cpp's `enum llama_token_attr`. */
const UNKNOWN = 1 << 0;
const CONTROL = 1 << 3;
const USER_DEFINED = 1 << 4;
const STRIP_LEFT = 1 << 7;
const STRIP_RIGHT = 1 << 8;

/** A real vocabulary of the llama.cpp release, by its name in `models/ggml-vocab-*.gguf`. */
export class BundledVocabulary implements TextTokenizer {
  private specialTokens: SpecialToken[] | undefined;

  private constructor(
    readonly name: string,
    private readonly path: string,
    private readonly native: NativeVocabulary,
  ) {}

  static async load(name: string): Promise<BundledVocabulary> {
    const bindings = await getBindings();
    const path = unpackBundledVocabulary(name);
    const native = new bindings.AddonModel(path, { addonExports: bindings, vocabOnly: true });
    if (!(await native.init())) throw new Error(`llama.cpp cannot load ${path}`);
    return new BundledVocabulary(name, path, native);
  }

  /** Null if the model needs no BOS token in front of a prompt. */
  get bosToken(): number | null {
    return this.native.shouldPrependBosToken() ? this.native.tokenBos() : null;
  }

  tokenize(text: string, options: { special?: boolean } = {}): Int32Array {
    return Int32Array.from(this.native.tokenize(text, options.special ?? true));
  }

  listSpecialTokens(): readonly SpecialToken[] {
    this.specialTokens ??= this.readSpecialTokens();
    return this.specialTokens;
  }

  private readSpecialTokens(): SpecialToken[] {
    const tokens: SpecialToken[] = [];
    const count = countTokens(this.path);
    for (let id = 0; id < count; id++) {
      const attributes = this.native.getTokenAttributes(id);
      const control = (attributes & (CONTROL | UNKNOWN)) !== 0;
      if (!control && (attributes & USER_DEFINED) === 0) continue;
      const text = this.native.getTokenString(id);
      const [stripLeft, stripRight] = [(attributes & STRIP_LEFT) !== 0, (attributes & STRIP_RIGHT) !== 0];
      tokens.push({ id, text, control, stripLeft, stripRight });
    }
    return tokens;
  }

  detokenize(tokenIds: ArrayLike<number>, options: { special?: boolean } = {}): string {
    return this.native.detokenize(Uint32Array.from(tokenIds), options.special ?? true);
  }

  dispose(): Promise<void> {
    return this.native.dispose();
  }
}

/**
 * Number of tokens in a GGUF: its key is followed by the types of an array and of its items (4 bytes each) and their
 * number.
 */
function countTokens(path: string): number {
  const key = "tokenizer.ggml.tokens";
  const file = readFileSync(path);
  return Number(file.readBigUInt64LE(file.indexOf(key) + key.length + 8));
}
