#!/usr/bin/env node
// A committed launcher, so that package managers can link `cria` before the first build.
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const entry = new URL("../dist/cli.js", import.meta.url);
if (!existsSync(fileURLToPath(entry))) {
  console.error("cria is not built yet. Run `npm run bootstrap` in the repository's root, then try again.");
  process.exit(1);
}
// Colours are only for people. The libraries that colour read this when they are loaded.
if (!process.env.FORCE_COLOR && !(process.stdout.isTTY && process.stderr.isTTY)) process.env.NO_COLOR ??= "1";
await import(entry.href);
