import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { hashFile, hashFiles } from "./hash-file.js";

const folder = mkdtempSync(join(tmpdir(), "cria-test-"));
afterAll(() => rmSync(folder, { recursive: true }));

function write(name: string, bytes: Uint8Array): string {
  writeFileSync(join(folder, name), bytes);
  return join(folder, name);
}

const sha256 = (...parts: Uint8Array[]) => createHash("sha256").update(Buffer.concat(parts)).digest("hex");

describe("a file's hash", () => {
  const [large, small] = [randomBytes(2_500_000), randomBytes(10)];
  const files = [write("large", large), write("small", small)];

  it("is the SHA-256 of its bytes; of several files that of all bytes in their order", async () => {
    expect(await hashFile(files[0]!)).toBe(sha256(large));
    expect(await hashFile(write("empty", new Uint8Array()))).toBe(sha256());
    expect(await hashFiles(files)).toBe(sha256(large, small));
  });

  it("reports its progress, and ends by its signal", async () => {
    const read: number[] = [];
    await hashFiles(files, { onRead: (bytes) => read.push(bytes) });
    expect(read.length).toBeGreaterThan(2);
    expect(read.reduce((sum, bytes) => sum + bytes)).toBe(2_500_010);
    const controller = new AbortController();
    await expect(
      hashFiles(files, { signal: controller.signal, onRead: () => controller.abort() }),
    ).rejects.toMatchObject({ name: "AbortError" });
  });

  it("passes errors of reading on", async () => {
    await expect(hashFile(join(folder, "none"))).rejects.toMatchObject({ code: "ENOENT" });
  });
});
