import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { importOptional } from "../import-optional.js";
import { fillSandboxOptions, PooledSandbox } from "./pooled-sandbox.js";
import { locateChild, resolvePackage, type SandboxOptions } from "./sandbox.js";
import type { ChildOptions } from "./sandbox-child.js";

/** Memory of a child without its program, in MiB. */
const CHILD_MB = 100;

/**
 * Runs JavaScript in QuickJS, each program in a new interpreter. The output is everything that the program prints, and
 * the value of its last expression. Input comes line by line from `readline()`, which gives null at the end. Timers run
 * in virtual time; there is no network, file or module to reach.
 */
export class JavaScriptSandbox extends PooledSandbox {
  constructor(options: SandboxOptions = {}) {
    const filled = fillSandboxOptions(options, CHILD_MB);
    super(filled, () => describeChild(filled));
  }
}

async function describeChild({ memoryMb, outputBytes }: Required<SandboxOptions>): Promise<ChildOptions> {
  const packages = "quickjs-emscripten-core @jitl/quickjs-wasmfile-release-sync";
  const load = async () => ({
    core: resolvePackage("quickjs-emscripten-core"),
    variant: resolvePackage("@jitl/quickjs-wasmfile-release-sync"),
    wasm: resolvePackage("@jitl/quickjs-wasmfile-release-sync/wasm"),
  });
  const urls = await importOptional(load, packages, "running JavaScript");
  // Their files lie in dist/, and the first package imports another one, which is installed inside it or next to it.
  const folders = Object.values(urls).map((url) => dirname(dirname(fileURLToPath(url))));
  return {
    file: locateChild("quickjs-child"),
    settings: { ...urls, watchdog: locateChild("watchdog").href, memoryMb, watchedMb: memoryMb, outputBytes },
    readable: [...folders, join(folders[0]!, "..", "@jitl", "quickjs-ffi-types")],
    heapMb: 128,
    startTimeoutS: 60,
  };
}
