// Turns the PTX of llama.cpp's CUDA library into machine code for one GPU, with ptxas of an installed CUDA.
//
// The published library holds machine code for compute capability 8.6, 8.9 and 12, and PTX 9.1 for all others, A100
// (8.0) and H100 (9.0) among them: drivers older than CUDA 13.1 refuse that. What travels to the other machine becomes
// smaller too, as all other GPUs' code is left out.
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { decompress } from "fzstd";

const run = promisify(execFile);

// A fatbin is a header and entries: magic u32, version u16, header's size u16, size of all entries u64. An entry: kind
// u16 (1: PTX, 2: machine code), version u16, header's size u32, payload's size u64 (padded), compressed size u32 at 16,
// architecture u32 at 28. Compressed payloads are zstd.
const MAGIC = 0xba55ed50;

function* listModules(bytes) {
  const magic = Buffer.alloc(4);
  magic.writeUInt32LE(MAGIC);
  for (let at = bytes.indexOf(magic); at >= 0; at = bytes.indexOf(magic, at)) {
    const [version, header] = [bytes.readUInt16LE(at + 4), bytes.readUInt16LE(at + 6)];
    const size = Number(bytes.readBigUInt64LE(at + 8));
    if (version !== 1 || header !== 16 || at + header + size > bytes.length) at += 4;
    else {
      yield { start: at, end: at + header + size };
      at += header + size;
    }
  }
}

function findPtx(bytes, { start, end }, architecture) {
  for (let at = start + 16; at < end; ) {
    const header = bytes.readUInt32LE(at + 4);
    const size = Number(bytes.readBigUInt64LE(at + 8));
    if (bytes.readUInt16LE(at) === 1 && bytes.readUInt32LE(at + 28) === architecture) {
      const compressed = bytes.readUInt32LE(at + 16);
      const text = Buffer.from(decompress(bytes.subarray(at + header, at + header + compressed))).toString("latin1");
      // ptxas of CUDA 13.0 takes 9.0 only; the text uses nothing that is newer.
      return text.replace(/\0+$/, "").replace(/^\.version 9\.\d+/m, ".version 9.0");
    }
    at += header + size;
  }
  throw new Error(`no PTX for compute capability ${architecture} in the module at ${start}`);
}

/** Compressed only where there is no room otherwise: what is packed afterwards becomes smaller so. */
async function makeFatbin(cuda, { cubin, fatbin, architecture, room }) {
  for (const compress of [[], ["--compress-all", "--compress-mode=size"]]) {
    const image = `--image3=kind=elf,sm=${architecture},file=${cubin}`;
    await run(join(cuda, "bin", "fatbinary"), ["-64", ...compress, `--create=${fatbin}`, image]);
    const made = readFileSync(fatbin);
    if (made.length <= room) return made;
  }
  throw new Error(`the code of ${cubin} has no room in the library`);
}

/**
 * @param library libggml-cuda.so
 * @param output where the new one is written
 * @param {{ architecture: number, cuda: string, jobs: number, onProgress?: (done: number, total: number) => void }} options
 *   architecture: 90 for compute capability 9.0; cuda: the folder with bin/ptxas and bin/fatbinary
 */
export async function assembleBackend(library, output, { architecture, cuda, jobs, onProgress = () => {} }) {
  const bytes = readFileSync(library);
  const modules = [...listModules(bytes)];
  const folder = mkdtempSync(join(tmpdir(), "cria-ptx-"));
  let [next, done] = [0, 0];
  async function work() {
    while (next < modules.length) {
      const module = modules[next];
      const [ptx, cubin, fatbin] = ["ptx", "cubin", "fatbin"].map((name) => join(folder, `${next}.${name}`));
      next++;
      writeFileSync(ptx, findPtx(bytes, module, architecture), "latin1");
      await run(join(cuda, "bin", "ptxas"), ["-O3", `-arch=sm_${architecture}`, ptx, "-o", cubin]);
      const made = await makeFatbin(cuda, { cubin, fatbin, architecture, room: module.end - module.start });
      bytes.fill(0, module.start, module.end);
      made.copy(bytes, module.start);
      for (const path of [ptx, cubin, fatbin]) rmSync(path);
      onProgress(++done, modules.length);
    }
  }
  try {
    await Promise.all(Array.from({ length: jobs }, work));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  writeFileSync(output, bytes);
}
