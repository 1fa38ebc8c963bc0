import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { nameBus, readBusArgs } from "./bus-args.js";

const folder = mkdtempSync(join(tmpdir(), "cria-bus-"));
afterAll(() => rmSync(folder, { recursive: true }));
const makeFile = (name: string) => {
  const path = join(folder, name);
  writeFileSync(path, "x");
  return path;
};

describe("the options of a bus", () => {
  it("are servers, files and a prefix", () => {
    const files = { creds: "a.creds", nkey: "a.nk", ca: "ca.pem", cert: "a.pem", "cert-key": "a-key.pem" };
    const words = Object.fromEntries(Object.entries(files).map(([option, name]) => [option, makeFile(name)]));
    const address = readBusArgs({ ...words, bus: "nats://one:4222, tls://[::1]:4222,three", prefix: "mine" });
    expect(address).toEqual({
      servers: ["nats://one:4222", "tls://[::1]:4222", "three"],
      credsFile: words.creds,
      nkeyFile: words.nkey,
      caFile: words.ca,
      certFile: words.cert,
      keyFile: words["cert-key"],
      prefix: "mine",
    });
    expect(nameBus(address)).toBe("nats://one:4222,tls://[::1]:4222,three (mine)");
    expect(nameBus(readBusArgs({ bus: "nats://one:4222" }))).toBe("nats://one:4222");
  });

  it("are optional; the others need --bus, and a certificate needs its key", () => {
    expect(readBusArgs({})).toBeUndefined();
    expect(() => readBusArgs({ creds: makeFile("b.creds") })).toThrow(
      expect.objectContaining({ code: "config/bad-argument", subject: "--creds", received: "no --bus" }),
    );
    expect(() => readBusArgs({ bus: "one", cert: makeFile("b.pem") })).toThrow(
      expect.objectContaining({ code: "config/bad-argument", subject: "--cert" }),
    );
    expect(() => readBusArgs({ bus: "one", "cert-key": makeFile("b-key.pem") })).toThrow(
      expect.objectContaining({ code: "config/bad-argument", subject: "--cert-key", received: "no --cert" }),
    );
  });

  it.each(["http://one:4222", "one two", "", "nats://", "nats://one:4222/path"])("refuse %j as a server", (bus) => {
    expect(() => readBusArgs({ bus })).toThrow(
      expect.objectContaining({
        code: "config/bad-argument",
        subject: "--bus",
        expected: "nats://host:4222 or tls://host:4222, several separated by commas",
      }),
    );
  });

  it("refuse a password, and do not repeat it", () => {
    const read = () => readBusArgs({ bus: "nats://one:4222,nats://anna:s3cret@two:4222" });
    expect(read).toThrow(
      expect.objectContaining({ code: "config/bad-argument", subject: "--bus", received: "nats://...@two:4222" }),
    );
    expect(read).not.toThrow(/s3cret|anna/);
  });

  it("name existing files", () => {
    expect(() => readBusArgs({ bus: "one", nkey: join(folder, "none.nk") })).toThrow(
      expect.objectContaining({ code: "config/path-missing", subject: "--nkey" }),
    );
  });
});
