import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { connect as dial } from "node:net";
import { join } from "node:path";
import { type NatsBusOptions, openNatsBus } from "@cria/cluster";
import { connect, nkeyAuthenticator } from "@nats-io/transport-node";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { parse, stringify } from "yaml";
import { claimKey, claimOf, hashText, jobId } from "../../packages/cluster/src/bus/job-record.js";
import { double, join as joinBus, quickTimes, rollout } from "../../packages/cluster/src/testing/bus-contract.js";
import { describeWithNats, NatsServer, smallBounds } from "../../packages/cluster/src/testing/nats-server.js";
import { runScript } from "./run-script.js";

const here = import.meta.dirname;

describeWithNats("nkeys-server.yaml: a server with TLS and a key for each machine", () => {
  const server = new NatsServer();
  const place = (name: string) => join(server.folder, name);
  const keys: Record<string, string> = {};
  const opened: { close(): Promise<void> }[] = [];
  const open = async (options: Partial<NatsBusOptions>) => {
    const bus = await openNatsBus({ servers: server.url, role: "worker", caFile: place("certs/ca.pem"), ...options });
    opened.push(bus);
    return bus;
  };
  const openAs = (name: string, options: Partial<NatsBusOptions> = {}) =>
    open({ nkeyFile: place(`${name}.nk`), waitMs: 0, ...options });

  /** The output of write-config.mjs for the example with these keys instead of its own. */
  async function writeConfig(names: { coordinator: string[]; worker: string[] }, clientCaFile?: string) {
    const example = parse(readFileSync(join(here, "nkeys-server.yaml"), "utf8"));
    example.users.coordinator = names.coordinator.map((name) => keys[name]);
    example.users.worker = Object.fromEntries(names.worker.map((name) => [name, keys[name]]));
    if (clientCaFile) example.tls.clientCaFile = clientCaFile;
    example.maxFileBytes = 10 ** 9;
    writeFileSync(place("nkeys-server.yaml"), stringify(example));
    return runScript("write-config.mjs", place("nkeys-server.yaml"));
  }

  beforeAll(async () => {
    const certificates = join(here, "make-certificates.sh");
    execFileSync("sh", [certificates, place("certs"), "127.0.0.1", "anna"], { stdio: "ignore" });
    execFileSync("sh", [certificates, place("other"), "127.0.0.1", "anna"], { stdio: "ignore" });
    for (const name of ["trainer", "anna", "ben", "stranger"])
      keys[name] = (await runScript("make-key.mjs", place(`${name}.nk`))).trim();
    await server.start(await writeConfig({ coordinator: ["trainer"], worker: ["anna", "ben"] }));
  });
  afterAll(async () => {
    await Promise.all(opened.map((bus) => bus.close()));
    await server.dispose();
  });

  it("has secrets that their owner alone can read, and that no second key replaces", async () => {
    for (const file of ["anna.nk", "certs/ca-key.pem", "certs/key.pem", "certs/anna-key.pem"])
      expect(statSync(place(file)).mode & 0o077, file).toBe(0);
    expect(readFileSync(place("server.conf"), "utf8")).not.toContain(readFileSync(place("anna.nk"), "utf8").trim());
    await expect(runScript("make-key.mjs", place("anna.nk"))).rejects.toThrow("EEXIST");
  });

  it("refuses connections without TLS", async () => {
    const socket = dial(server.port, "127.0.0.1");
    let answer = "";
    socket.on("data", (text) => {
      answer += text;
    });
    socket.write(`CONNECT {"verbose":false,"protocol":1}\r\nSUB > 1\r\nPUB cria.jobs.rollout.x 2\r\n{}\r\nPING\r\n`);
    await once(socket, "close");
    expect(answer).toMatch(/"tls_required":true/);
    expect(answer).not.toMatch(/PONG|MSG/);
  });

  it("is refused by a client that trusts another authority", async () => {
    const wrong = openAs("anna", { caFile: place("other/ca.pem") });
    await expect(wrong).rejects.toMatchObject({
      code: "cluster/tls",
      received: expect.stringContaining("certificate"),
    });
    await expect(openAs("anna", { caFile: undefined })).rejects.toMatchObject({ code: "cluster/tls" });
  });

  it("lets a key act as its own worker only", async () => {
    const coordinator = await openAs("trainer", { role: "coordinator", times: quickTimes, bounds: smallBounds });
    const anna = await openAs("anna");
    const worker = await joinBus(anna, "anna", double);
    for (const id of ["ben", "invented"])
      await expect(joinBus(anna, id, double)).rejects.toMatchObject({
        code: "cluster/refused",
        subject: `worker ${id}`,
      });
    expect((await coordinator.listWorkers()).map(({ id }) => id)).toEqual(["anna"]);
    await worker.drain();
  });

  it("lets a key give results in the name of its own worker only", async () => {
    const coordinator = await openAs("trainer", { role: "coordinator", times: quickTimes, bounds: smallBounds });
    const connection = await connect({
      servers: `localhost:${server.port}`,
      tls: { ca: readFileSync(place("certs/ca.pem"), "utf8"), rejectUnauthorized: false } as object,
      authenticator: nkeyAuthenticator(new TextEncoder().encode(readFileSync(place("anna.nk"), "utf8").trim())),
      inboxPrefix: "_INBOX_worker",
    });
    const write = (key: string, text: string) => connection.request(`$KV.cria-records.${key}`, text);
    const forge = (row: number, worker: string) => {
      const id = jobId("rollout", { row });
      const result = { value: { answer: 99 }, meta: null, hash: hashText('{"answer":99}'), worker };
      const record = { protocol: 1, status: "done", tries: [], declined: {}, conflicts: [], result };
      return {
        claim: () => write(claimKey(id, worker), claimOf(result)),
        store: () => write(id, JSON.stringify(record)),
      };
    };
    const [others, own] = [forge(5, "ben"), forge(6, "anna")];
    await expect(others.claim()).rejects.toThrow(/permission/i);
    await own.claim();
    for (const { store } of [others, own]) await store();
    const ben = await joinBus(await openAs("ben"), "ben", double);
    expect(await coordinator.submit(rollout, { row: 5 })).toMatchObject({ value: { answer: 10 }, worker: "ben" });
    expect(await coordinator.submit(rollout, { row: 6 })).toMatchObject({ value: { answer: 99 }, worker: "anna" });
    await ben.drain();
    await connection.close();
  });

  it("shuts out the worker whose key is taken away, and no other", async () => {
    const coordinator = await openAs("trainer", { role: "coordinator", times: quickTimes, bounds: smallBounds });
    const onProblem = vi.fn();
    const [anna, ben] = [await openAs("anna"), await openAs("ben", { onProblem })];
    await joinBus(ben, "ben", double);
    expect(await coordinator.submit(rollout, { row: 1 })).toMatchObject({ worker: "ben" });

    server.reload(await writeConfig({ coordinator: ["trainer"], worker: ["anna"] }));
    await vi.waitFor(() => expect(ben.closed.aborted).toBe(true), { timeout: 10_000 });
    expect(ben.closed.reason).toMatchObject({ code: "cluster/shut-out" });
    expect(onProblem).toHaveBeenCalledWith(ben.closed.reason);
    await expect(openAs("ben")).rejects.toMatchObject({ code: "cluster/refused" });
    await expect(openAs("stranger")).rejects.toMatchObject({ code: "cluster/refused" });

    await joinBus(anna, "anna", double);
    expect(await coordinator.submit(rollout, { row: 2 })).toMatchObject({ value: { answer: 4 }, worker: "anna" });
  });

  it("asks for a client's certificate beside the key, if configured", async () => {
    server.reload(await writeConfig({ coordinator: ["trainer"], worker: ["anna"] }, "certs/ca.pem"));
    const own = (folder: string) => ({
      certFile: place(`${folder}/anna.pem`),
      keyFile: place(`${folder}/anna-key.pem`),
    });
    await vi.waitFor(() => openAs("anna", own("certs")), { timeout: 10_000 });
    const refused = [undefined, own("other")].map((stranger) =>
      expect(openAs("anna", { ...stranger, connectMs: 300 })).rejects.toMatchObject({
        code: "cluster/unreachable",
        remedy: expect.stringContaining("client certificate"),
      }),
    );
    await Promise.all(refused);
    await expect(openAs("stranger", own("certs"))).rejects.toMatchObject({ code: "cluster/refused" });
  });
});
