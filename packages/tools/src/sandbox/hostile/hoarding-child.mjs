/** A child whose programs leave memory behind when they end: as many MiB as the code says. */
import { readJson } from "../frames.mjs";
import { servePrograms } from "../serve-programs.mjs";

const kept = [];
await servePrograms(readJson(), async () => ({ code }) => {
  kept.push(Buffer.alloc(Number(code) * 2 ** 20, 1));
  return undefined;
});
