import { createHash } from "node:crypto";
import { type FileHandle, mkdir, open, readFile, truncate } from "node:fs/promises";
import { dirname } from "node:path";
import { DataError } from "@cria/core";
import { guardRunWrite } from "../checkpoints/run-folder.js";

/** A recorded answer. */
export interface JournalEntry {
  /** The question's place in the step. */
  place: string;
  /** Digest of the question. */
  asked: string;
  /** JSON, with byte arrays in it. */
  answer: unknown;
}

/**
 * The recorded answers of one step: a line of JSON each, with a checksum. Lines are appended and synced before their
 * answers are used.
 */
export class JournalFile {
  private file: FileHandle | undefined;
  /** Lines that are not written yet. */
  private pending: string[] = [];
  private writing: Promise<void> = Promise.resolve();
  /** After a failed write nothing more is written: the file may end within a line. */
  private failure: { error: unknown } | undefined;

  constructor(readonly path: string) {}

  /**
   * The entries by place; of several at one place the last. None without a file. The end of a line that a kill cut
   * short is removed.
   * @throws DataError "data/bad-journal" for a whole line that is damaged: its tool might be asked a second time.
   */
  async read(): Promise<Map<string, JournalEntry>> {
    const bytes = await readFile(this.path).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return null;
      throw makeBadJournal(this.path, "a file that can be read", error.message);
    });
    const entries = new Map<string, JournalEntry>();
    if (bytes === null) return entries;
    const end = bytes.lastIndexOf("\n") + 1;
    if (end < bytes.length) await guardRunWrite(this.path, () => truncate(this.path, end));
    const lines = bytes.subarray(0, end).toString().split("\n").slice(0, -1);
    for (const [i, line] of lines.entries()) {
      const entry = readLine(line);
      if (!entry) throw makeBadJournal(this.path, "a line of JSON that matches its checksum", `line ${i + 1}`);
      entries.set(entry.place, entry);
    }
    return entries;
  }

  /** Resolves once the entry is on disk. Entries of the same instant are synced together. @throws DataError */
  async append(entry: JournalEntry): Promise<void> {
    this.pending.push(formatLine(entry));
    const written = this.writing.then(() => this.flush());
    this.writing = written.catch(() => undefined);
    return written;
  }

  /** Waits for what is being written, and closes the file. */
  async close(): Promise<void> {
    await this.writing;
    await this.file?.close();
    this.file = undefined;
  }

  private async flush(): Promise<void> {
    if (this.failure) throw this.failure.error;
    const lines = this.pending.splice(0).join("");
    if (lines === "") return;
    try {
      await guardRunWrite(this.path, async () => {
        const file = await this.openOnce();
        await file.writeFile(lines);
        await file.datasync();
      });
    } catch (error) {
      this.failure = { error };
      throw error;
    }
  }

  private async openOnce(): Promise<FileHandle> {
    if (this.file) return this.file;
    await mkdir(dirname(this.path), { recursive: true });
    this.file = await open(this.path, "a");
    return this.file;
  }
}

function formatLine({ place, asked, answer }: JournalEntry): string {
  const text = JSON.stringify({ place, asked, answer: encodeBytes(answer) });
  return `${JSON.stringify({ check: checksum(text), entry: text })}\n`;
}

/** Null for a damaged line. */
function readLine(line: string): JournalEntry | null {
  try {
    const { check, entry } = JSON.parse(line) as { check: string; entry: string };
    if (check !== checksum(entry)) return null;
    const { answer, ...rest } = JSON.parse(entry) as JournalEntry;
    return { ...rest, answer: decodeBytes(answer) };
  } catch {
    return null;
  }
}

const checksum = (text: string) => createHash("sha256").update(text).digest("hex").slice(0, 16);

/** Key of an object that stands for a byte array. A tool's own key of that name is written with one more "$". */
const BYTES = "$bytes";
const isOwnKey = (key: string) => /^\$+bytes$/.test(key);

function encodeBytes(value: unknown): unknown {
  if (value instanceof Uint8Array) return { [BYTES]: Buffer.from(value).toString("base64") };
  if (Array.isArray(value)) return value.map(encodeBytes);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [isOwnKey(key) ? `$${key}` : key, encodeBytes(each)]),
  );
}

function decodeBytes(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(decodeBytes);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value);
  const [key, text] = entries[0] ?? [];
  if (entries.length === 1 && key === BYTES && typeof text === "string")
    return new Uint8Array(Buffer.from(text, "base64"));
  return Object.fromEntries(entries.map(([name, each]) => [isOwnKey(name) ? name.slice(1) : name, decodeBytes(each)]));
}

function makeBadJournal(path: string, expected: string, received: string): DataError {
  return new DataError("is damaged", {
    code: "data/bad-journal",
    subject: path,
    expected,
    received,
    remedy: "restore the file; or remove it, and the tools of its step are asked again",
  });
}
