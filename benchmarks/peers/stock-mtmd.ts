import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { getRuntimeInfo } from "@cria/engine";
import { getProgram, getSourceTree } from "../llama-cpp.js";
import { LineProcess } from "./line-process.js";

export interface StockMtmdOptions {
  path: string;
  projector: string;
  threads: number;
  contextSize: number;
}

export interface Answer {
  /** From reading the picture's file on. */
  seconds: number;
  /** Positions of the prompt, if one was evaluated. */
  positions: number;
}

/** llama.cpp's own mtmd over the same libraries as ours, in a separate process. One question at a time. */
export class StockMtmd {
  private constructor(private readonly process: LineProcess) {}

  static async start(options: StockMtmdOptions, log: (text: string) => void): Promise<StockMtmd> {
    const { path, projector, threads, contextSize } = options;
    const backends = getRuntimeInfo().librariesFolder;
    const args = [backends, path, projector, threads, contextSize].map(String);
    const child = spawn(await getStockMtmd(log), args, { stdio: ["pipe", "pipe", "inherit"] });
    return new StockMtmd(new LineProcess(child));
  }

  encode(file: string): Promise<Answer> {
    return this.send(`encode ${file}`);
  }

  /** @param text behind the picture; on one line. */
  ask(file: string, tokens: number, text: string): Promise<Answer> {
    return this.send(`ask ${file} ${tokens} ${text}`);
  }

  private async send(line: string): Promise<Answer> {
    this.process.write(line);
    return this.process.read<Answer>("stock mtmd ended; its last words are above");
  }

  dispose(): Promise<void> {
    return this.process.dispose();
  }
}

/** Without the generation of speech, which needs functions that the prebuilt libraries do not export. */
async function getStockMtmd(log: (text: string) => void): Promise<string> {
  const folder = "tools/mtmd";
  const models = readdirSync(join(await getSourceTree(), folder, "models")).filter((name) => name.endsWith(".cpp"));
  const files = ["mtmd.cpp", "clip.cpp", "mtmd-image.cpp", "mtmd-audio.cpp", "mtmd-helper.cpp"];
  const sources = [...files, ...models.map((name) => `models/${name}`)].map((file) => `${folder}/${file}`);
  const hashes = ["hash.cpp", "xxhash/xxhash.c", "sha256/sha256.c"].map((file) => `vendor/hash/${file}`);
  const main = join(import.meta.dirname, "stock-mtmd-main.cc");
  const includes = [folder, "vendor/hash", "src", "ggml/src"];
  return getProgram({ name: "stock-mtmd", sources: [...sources, ...hashes, main], includes, flags: ["-w"] }, log);
}
