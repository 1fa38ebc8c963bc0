import { execFileSync } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { openNatsBus } from "@cria/cluster";
import { connect, credsAuthenticator } from "@nats-io/transport-node";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { double, join as joinBus, quickTimes, rollout } from "../../packages/cluster/src/testing/bus-contract.js";
import { describeWithNats, NatsServer, smallBounds } from "../../packages/cluster/src/testing/nats-server.js";
import { runScript } from "./run-script.js";

const here = import.meta.dirname;

describeWithNats("jwt-server.conf: a server that knows an account, and JWTs for each machine", () => {
  const server = new NatsServer();
  const place = (name: string) => join(server.folder, name);
  const opened: { close(): Promise<void> }[] = [];
  const reach = (name: string) => ({
    servers: server.url,
    caFile: place("certs/ca.pem"),
    credsFile: place(`${name}.creds`),
  });
  const open = async (role: "coordinator" | "worker" | "observer", name: string) => {
    const own = role === "coordinator" ? { times: quickTimes, bounds: smallBounds } : { waitMs: 0 };
    const bus = await openNatsBus({ ...reach(name), role, ...own });
    opened.push(bus);
    return bus;
  };
  /** A connection that may request anything. */
  const connectAs = (name: string, role: string) =>
    connect({
      servers: `localhost:${server.port}`,
      tls: { ca: readFileSync(place("certs/ca.pem"), "utf8"), rejectUnauthorized: false } as object,
      authenticator: credsAuthenticator(readFileSync(place(`${name}.creds`))),
      inboxPrefix: `_INBOX_${role}`,
    });
  const config = readFileSync(join(here, "jwt-server.conf"), "utf8");

  beforeAll(async () => {
    execFileSync("sh", [join(here, "make-certificates.sh"), place("certs"), "127.0.0.1"], { stdio: "ignore" });
    const users = ["coordinator=trainer", "worker=anna", "worker=ben", "workers=fleet", "observer=me"];
    await runScript("make-jwts.mjs", server.folder, ...users, "--days", "90");
    // Another operator's, with an account of the same names.
    await runScript("make-jwts.mjs", place("elsewhere"), "coordinator=trainer");
    await server.start(config);
  });
  afterAll(async () => {
    await Promise.all(opened.map((bus) => bus.close()));
    await server.dispose();
  });

  it("gives the server no secret, and lets only the owner read the others", () => {
    expect(readFileSync(place("jwt.conf"), "utf8")).not.toMatch(/\bS[OAU][A-Z2-7]{50,}/);
    for (const file of ["operator.nk", "account.nk", "trainer.creds", "anna.creds"])
      expect(statSync(place(file)).mode & 0o077, file).toBe(0);
  });

  it("lets each role do its own part only", async () => {
    const coordinator = await open("coordinator", "trainer");
    const worker = await open("worker", "anna");
    const observer = await open("observer", "me");
    const blob = await coordinator.blobs.put(new Uint8Array(200_000).fill(3));
    await joinBus(worker, "anna", async (payload, context) => {
      expect((await worker.blobs.get(blob)).length).toBe(200_000);
      return double(payload, context);
    });
    expect(await coordinator.submit(rollout, { row: 4 })).toMatchObject({ value: { answer: 8 }, tries: 1 });
    const policy = await coordinator.publishPolicy({ run: blob, version: 1, weights: blob });
    expect(await worker.readPolicy()).toEqual(policy);
    expect(await observer.readPolicy()).toEqual(policy);
    await expect(joinBus(worker, "ben", double)).rejects.toMatchObject({ code: "cluster/refused" });
    const fleet = await open("worker", "fleet");
    for (const id of ["one", "two"]) await (await joinBus(fleet, id, double)).drain();
    await vi.waitFor(async () => expect((await observer.listWorkers()).map(({ id }) => id)).toEqual(["anna"]));
    await (await coordinator.acquireLease("trainer")).release();

    await expect(worker.publishPolicy({ run: blob, version: 2, weights: blob }, policy)).rejects.toThrow(/permission/i);
    await expect(joinBus(observer, "me", double)).rejects.toMatchObject({
      code: "cluster/refused",
      subject: "worker me",
    });
    for (const [name, role, subjects] of [
      ["anna", "worker", ["cria.jobs.rollout.x", "$KV.cria-control.lease", "$JS.API.STREAM.DELETE.cria-jobs"]],
      ["me", "observer", ["$KV.cria-records.x", "$JS.API.STREAM.MSG.GET.KV_cria-records", "$O.cria-blobs.M.x"]],
      ["trainer", "coordinator", ["$JS.API.STREAM.DELETE.cria-jobs", "other.jobs.rollout.x"]],
    ] as const) {
      const connection = await connectAs(name, role);
      for (const subject of subjects)
        await expect(connection.request(subject, "{}", { timeout: 5_000 }), subject).rejects.toThrow(/permission/i);
      for (const subject of [">", "_INBOX_coordinator.>"].slice(0, role === "coordinator" ? 1 : 2)) {
        const refusal = await new Promise((resolve) => connection.subscribe(subject, { callback: resolve }));
        expect(String(refusal), `${role} reads ${subject}`).toMatch(/permission/i);
      }
      await connection.close();
    }
  });

  it("refuses clients without a JWT, and with another operator's", async () => {
    const { credsFile: _, ...nobody } = reach("none");
    await expect(openNatsBus({ ...nobody, role: "observer" })).rejects.toMatchObject({ code: "cluster/refused" });
    await expect(open("coordinator", "elsewhere/trainer")).rejects.toMatchObject({ code: "cluster/refused" });
  });

  it("shuts out revoked keys and JWTs that have ended, and no others", async () => {
    const [anna, ben] = [await open("worker", "anna"), await open("worker", "ben")];
    await runScript("make-jwts.mjs", server.folder, "worker=late", "--days=-1", "--revoke", "ben");
    server.reload(config);
    await vi.waitFor(() => expect(ben.closed.aborted).toBe(true), { timeout: 10_000 });
    expect(ben.closed.reason).toMatchObject({ code: "cluster/shut-out" });
    for (const name of ["ben", "late"])
      await expect(open("worker", name)).rejects.toMatchObject({ code: "cluster/refused" });
    expect(await anna.readPolicy()).toMatchObject({ version: 1 });
  });
});
