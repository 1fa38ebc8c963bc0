import { open } from "node:fs/promises";
import { vi } from "vitest";

/**
 * Makes the disk full for open files, until the returned function is called.
 * @param from number of the first write that fails.
 */
export async function fillDisk(from = 1): Promise<() => void> {
  const any = await open(import.meta.filename);
  const prototype: typeof any = Object.getPrototypeOf(any);
  await any.close();
  const { writeFile } = prototype;
  let writes = 0;
  const spy = vi.spyOn(prototype, "writeFile").mockImplementation(function (this: typeof any, ...given) {
    if (++writes < from) return writeFile.apply(this, given);
    return Promise.reject(Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" }));
  });
  return () => spy.mockRestore();
}
