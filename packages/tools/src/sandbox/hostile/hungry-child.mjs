/** A child whose program has left its interpreter's memory, and takes memory of the process. */
import { readJson } from "../frames.mjs";
import { servePrograms } from "../serve-programs.mjs";

await servePrograms(readJson(), async () => (_, write) => {
  write("before");
  const taken = [];
  for (;;) taken.push(Buffer.alloc(2 ** 20, 1));
});
