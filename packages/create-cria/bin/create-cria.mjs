#!/usr/bin/env node
// `npm create cria my-task -- --model my.gguf` is `cria init my-task --model my.gguf`.
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

const manifest = createRequire(import.meta.url).resolve("cria/package.json");
const { bin } = createRequire(import.meta.url)(manifest);
process.argv.splice(2, 0, "init");
await import(pathToFileURL(join(dirname(manifest), bin.cria)).href);
