import { DataError } from "./errors/data-error.js";

/**
 * Converts errors of the file system, such as full disks, limits and read-only folders, to a DataError with the file's
 * name and a remedy.
 * @param elsewhere remedy for a place that cannot be used.
 * @throws DataError
 */
export async function guardWrite<T>(path: string, write: () => Promise<T>, elsewhere?: string): Promise<T> {
  try {
    return await write();
  } catch (cause) {
    throw new DataError("cannot be written", {
      code: "data/write-failed",
      subject: path,
      expected: "a writable folder with room",
      received: (cause as Error).message,
      remedy: suggestWriteRemedy(cause, elsewhere),
      cause,
    });
  }
}

/** A person's remedy for an error of the file system. */
export function suggestWriteRemedy(cause: unknown, elsewhere = "choose another folder"): string {
  const code = (cause as NodeJS.ErrnoException | undefined)?.code;
  // A limit of the process, or of a file system such as FAT.
  if (code === "EFBIG") return `raise the limit of file sizes (ulimit -f unlimited), or ${elsewhere}`;
  if (/^(EACCES|EPERM|EROFS)$/.test(code ?? "")) return `make the folder writable, or ${elsewhere}`;
  return `free some space, or ${elsewhere}`;
}
