import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join as joinPath } from "node:path";
import { connect, nkeyAuthenticator, nkeys } from "@nats-io/transport-node";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import type { JobBus } from "../bus/job-bus.js";
import { double, join, quickTimes, rollout } from "../testing/bus-contract.js";
import { describeWithNats, NatsServer, smallBounds } from "../testing/nats-server.js";
import { inboxOf, type Role, roles } from "./names.js";
import { openNatsBus } from "./open-nats-bus.js";
import { describeNatsServer } from "./server-config.js";

describeWithNats("a server with TLS and a role for each key", () => {
  const server = new NatsServer();
  const place = (name: string) => joinPath(server.folder, name);
  const buses: JobBus[] = [];

  /** A key in a file. @returns its public half. */
  function makeKey(name: string): string {
    const pair = nkeys.createUser();
    writeFileSync(place(`${name}.nk`), `${new TextDecoder().decode(pair.getSeed())}\n`, { mode: 0o600 });
    return pair.getPublicKey();
  }
  const reach = (key: string) => ({ servers: server.url, caFile: place("cert.pem"), nkeyFile: place(`${key}.nk`) });
  const open = async (role: Role, key: string = role) => {
    const own = role === "coordinator" ? { times: quickTimes, bounds: smallBounds } : { waitMs: 0 };
    const bus = await openNatsBus({ ...reach(key), role, ...own });
    buses.push(bus);
    return bus;
  };
  /** A connection that may request anything. */
  const connectAs = (role: Role) =>
    connect({
      servers: server.url,
      tls: { ca: readFileSync(place("cert.pem"), "utf8") },
      authenticator: nkeyAuthenticator(new TextEncoder().encode(readFileSync(place(`${role}.nk`), "utf8").trim())),
      inboxPrefix: inboxOf(role),
    });

  beforeAll(async () => {
    const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"];
    const files = ["-keyout", place("key.pem"), "-out", place("cert.pem")];
    const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
    execFileSync("openssl", ["req", "-x509", ...kind, ...files, ...subject], { stdio: "ignore" });
    const users = Object.fromEntries(roles.map((role) => [role, [makeKey(role)]])) as Record<Role, string[]>;
    makeKey("stranger");
    await server.start(
      describeNatsServer({
        users,
        storeDir: place("store"),
        maxFileBytes: 10 ** 9,
        tls: { certFile: place("cert.pem"), keyFile: place("key.pem") },
      }),
    );
  });
  afterAll(async () => {
    await Promise.all(buses.map((bus) => bus.close()));
    await server.dispose();
  });

  it("lets each role do its own part only", async () => {
    const coordinator = await open("coordinator");
    const worker = await open("worker");
    const observer = await open("observer");
    const blob = await coordinator.blobs.put(new Uint8Array(300_000).fill(3));

    // A worker takes jobs, reads and writes blobs, follows the policy.
    const versions: number[] = [];
    await worker.watchPolicy(({ version }) => versions.push(version), new AbortController().signal);
    await join(worker, "a", async (payload, context) => {
      expect((await worker.blobs.get(blob)).length).toBe(300_000);
      await worker.blobs.put(new Uint8Array([payload.row]));
      return double(payload, context);
    });
    expect(await coordinator.submit(rollout, { row: 4 })).toMatchObject({ value: { answer: 8 }, tries: 1 });
    const policy = await coordinator.publishPolicy({ run: blob, version: 1, weights: blob });
    await vi.waitFor(() => expect(versions).toEqual([1]), { timeout: 20_000 });
    expect((await observer.listWorkers()).map(({ id }) => id)).toEqual(["a"]);
    expect(await observer.readPolicy()).toEqual(policy);
    const lease = await coordinator.acquireLease("me");
    await lease.release();

    // But it publishes no policy, takes no lease, and submits no job; an observer writes nothing.
    await expect(worker.publishPolicy({ run: blob, version: 2, weights: blob }, policy)).rejects.toThrow(/permission/i);
    const checkpoint = { run: "p/e", term: 1, step: 1, manifest: blob };
    await coordinator.nameCheckpoint(checkpoint);
    await expect(worker.nameCheckpoint({ ...checkpoint, term: 2 })).rejects.toThrow(/permission/i);
    const hurry = AbortSignal.timeout(1_000);
    await expect(worker.acquireLease("thief", hurry)).rejects.toMatchObject({
      name: expect.stringMatching(/Abort|Timeout/),
    });
    await expect(observer.blobs.put(new Uint8Array(1))).rejects.toThrow(/permission/i);
    await expect(join(observer, "b", double)).rejects.toMatchObject({ code: "cluster/refused", subject: "worker b" });
    for (const [role, subject] of [
      ["worker", "cria.jobs.rollout.x"],
      ["worker", "$KV.cria-control.policy"],
      ["worker", "$JS.API.STREAM.DELETE.cria-jobs"],
      ["worker", "$JS.API.STREAM.PURGE.OBJ_cria-blobs"],
      ["observer", "$KV.cria-records.x"],
      ["observer", "$JS.API.STREAM.MSG.GET.KV_cria-records"],
    ] as const) {
      const connection = await connectAs(role);
      await expect(connection.request(subject, "{}", { timeout: 5_000 }), `${role} ${subject}`).rejects.toThrow(
        /permission/i,
      );
      await connection.close();
    }
    expect(await coordinator.readPolicy()).toEqual(policy);
  });

  it("keeps each role's answers from the others", async () => {
    const connection = await connectAs("worker");
    for (const subject of [">", "cria.>", "$KV.>", `${inboxOf("coordinator")}.>`]) {
      const refusal = await new Promise((resolve) => connection.subscribe(subject, { callback: resolve }));
      expect(String(refusal), subject).toMatch(/permission/i);
    }
    await connection.close();
  });

  it("refuses strangers: with another key, with none, or without TLS", async () => {
    await expect(open("worker", "stranger")).rejects.toMatchObject({ code: "cluster/refused" });
    const { caFile, servers } = reach("worker");
    await expect(openNatsBus({ servers, caFile, role: "observer" })).rejects.toMatchObject({ code: "cluster/refused" });
    const untrusted = openNatsBus({ servers, nkeyFile: place("worker.nk"), role: "worker" });
    await expect(untrusted).rejects.toMatchObject({ code: "cluster/tls" });
    const elsewhere = openNatsBus({ ...reach("observer"), role: "observer", prefix: "other", waitMs: 0 });
    await expect(elsewhere).rejects.toMatchObject({ code: "cluster/refused", subject: "the bus other" });
    const missing = openNatsBus({ servers, nkeyFile: place("none.nk"), role: "worker" });
    await expect(missing).rejects.toMatchObject({ code: "config/unreadable" });
  });

  it("is described without secrets, and refuses a seed in place of a key", () => {
    const seed = readFileSync(place("worker.nk"), "utf8").trim();
    expect(readFileSync(place("server.conf"), "utf8")).not.toContain(seed);
    const users = { coordinator: [], worker: [seed], observer: [] };
    const tls = { certFile: "cert.pem", keyFile: "key.pem" };
    const describeIt = () => describeNatsServer({ users, storeDir: "store", maxFileBytes: 1, tls });
    expect(describeIt).toThrow(
      expect.objectContaining({ code: "cluster/invalid-nkey", subject: "the nkey of a worker" }),
    );
    expect(describeIt).not.toThrow(new RegExp(seed));
  });
});
