import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DataError } from "@cria/core";
import { afterAll, describe, expect, it } from "vitest";
import { JournalFile } from "./journal-file.js";

const work = mkdtempSync(join(tmpdir(), "cria-journal-"));
afterAll(() => rmSync(work, { recursive: true, force: true }));

const entry = (place: string, answer: unknown = place) => ({ place, asked: `${place}?`, answer });

async function write(name: string, ...entries: ReturnType<typeof entry>[]): Promise<string> {
  const path = join(work, name, "1.jsonl");
  const file = new JournalFile(path);
  // At once, as conversations do.
  await Promise.all(entries.map((each) => file.append(each)));
  await file.close();
  return path;
}

describe("a file of the journal", () => {
  it("is read as it was written, byte arrays too; of two entries at one place the last counts", async () => {
    const image = { type: "image", image: new Uint8Array([0, 200, 10]) };
    const own = { $bytes: "AAAA", list: [{ $bytes: "AAAA" }, { $$bytes: 1 }] };
    const path = await write(
      "whole",
      entry("a", [image, null, 0.1, "\ud800 \n"]),
      entry("b"),
      entry("b", { x: 1 }),
      entry("c", own),
    );
    const read = await new JournalFile(path).read();
    expect([...read.values()]).toEqual([
      entry("a", [image, null, 0.1, "\ud800 \n"]),
      entry("b", { x: 1 }),
      entry("c", own),
    ]);
    expect(await new JournalFile(join(work, "missing.jsonl")).read()).toEqual(new Map());
  });

  it("that a kill cut short, at any byte, has its whole lines, and goes on after them", async () => {
    const path = await write("torn", entry("a", "é"), entry("b"));
    const whole = readFileSync(path);
    const first = whole.indexOf("\n") + 1;
    for (let end = first; end < whole.length; end++) {
      writeFileSync(path, whole.subarray(0, end));
      const file = new JournalFile(path);
      expect([...(await file.read()).keys()]).toEqual(["a"]);
      await file.append(entry("c"));
      await file.close();
      expect([...(await new JournalFile(path).read()).keys()]).toEqual(["a", "c"]);
    }
  });

  it("with a damaged line is refused, for any changed byte", async () => {
    const path = await write("damaged", entry("a"), entry("b"));
    const whole = readFileSync(path);
    for (let at = 0; at < whole.indexOf("\n"); at++) {
      const damaged = Buffer.from(whole);
      damaged[at] = damaged[at] === 0x78 ? 0x79 : 0x78;
      writeFileSync(path, damaged);
      await expect(new JournalFile(path).read(), `byte ${at}`).rejects.toMatchObject({ code: "data/bad-journal" });
    }
    writeFileSync(path, whole);
    appendFileSync(path, "\n");
    await expect(new JournalFile(path).read()).rejects.toMatchObject({ code: "data/bad-journal" });
  });

  it("that cannot be written rejects all pending writes, and takes nothing more", async () => {
    mkdirSync(join(work, "folder", "1.jsonl"), { recursive: true });
    const file = new JournalFile(join(work, "folder", "1.jsonl"));
    const settled = await Promise.allSettled([file.append(entry("a")), file.append(entry("b"))]);
    expect(settled.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    await expect(file.append(entry("c"))).rejects.toThrow(DataError);
    await file.close();
  });
});
