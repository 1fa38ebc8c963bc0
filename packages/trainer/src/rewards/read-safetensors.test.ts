import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { readSafetensorsTensor } from "./read-safetensors.js";

const folder = mkdtempSync(join(tmpdir(), "cria-safetensors-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function write(header: string, data: Buffer, length = header.length): string {
  const path = join(folder, "file.safetensors");
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(length));
  writeFileSync(path, Buffer.concat([size, Buffer.from(header), data]));
  return path;
}
const one = (dtype: string, end: number) =>
  JSON.stringify({ __metadata__: { format: "pt" }, w: { dtype, shape: [1, 3], data_offsets: [2, end] } });

describe("a tensor of a safetensors file", () => {
  it("is read from F32, F16 and BF16", async () => {
    const floats = Buffer.concat([Buffer.alloc(2), Buffer.from(Float32Array.of(1.5, -2, 0.1).buffer)]);
    expect(await readSafetensorsTensor(write(one("F32", 14), floats), "w")).toEqual({
      shape: [1, 3],
      data: Float32Array.of(1.5, -2, 0.1),
    });
    // As numpy.float16 and PyTorch's bfloat16 write 1.5, -2 and the smallest float16 or 0.5.
    const halves = Buffer.from("0000003e00c00100", "hex");
    expect([...(await readSafetensorsTensor(write(one("F16", 8), halves), "w")).data]).toEqual([1.5, -2, 2 ** -24]);
    const brains = Buffer.from("0000c03f00c0003f", "hex");
    expect([...(await readSafetensorsTensor(write(one("BF16", 8), brains), "w")).data]).toEqual([1.5, -2, 0.5]);
  });

  it("that is cut off, of another type, or not there is an error that names the file", async () => {
    const read = (path: string, name = "w") => readSafetensorsTensor(path, name);
    const refused = (received: string) => ({
      code: "config/bad-safetensors",
      subject: expect.stringContaining("file.safetensors"),
      received: expect.stringContaining(received),
    });
    await expect(read(write(one("F32", 14), Buffer.alloc(8)))).rejects.toMatchObject(refused("byte"));
    await expect(read(write(one("I64", 14), Buffer.alloc(14)))).rejects.toMatchObject(refused("I64"));
    await expect(read(write(one("F32", 14), Buffer.alloc(14)), "v")).rejects.toMatchObject(refused("w"));
    await expect(read(write("", Buffer.alloc(0), 2 ** 40))).rejects.toMatchObject(refused(`${2 ** 40} bytes`));
    await expect(read(write("{", Buffer.alloc(0)))).rejects.toMatchObject(refused("JSON"));
  });
});
