// Coordinators, workers and nats-server, each in a separate network namespace: lines that are cut for 30 s, a fifth of
// all packets lost, 200 ms each way. In every case each job must have one result, and the right one.
//
//   node --conditions=cria-source --import tsx scripts/nightly/cluster-network.mjs [--only TEXT] [--out scripts/nightly/cluster-network]
//
// Needs root (CAP_NET_ADMIN, CAP_SYS_ADMIN), ip (iproute2), nft (nftables), nats-server. Where the kernel has no netem,
// the delay is a proxy's. With --out it writes <out>.json. Takes five minutes. The exit code is 1 when a check fails,
// or when all had to be left out.
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { NatsServer, smallBounds } from "../../packages/cluster/src/testing/nats-process.ts";
import { whyNoNamespaces, whyNot } from "../../packages/cluster/src/testing/network/namespaces.ts";
import { Peer } from "../../packages/cluster/src/testing/network/peers.ts";
import { findFaults, TrainingNetwork } from "../../packages/cluster/src/testing/network/scenario.ts";
import { SlowLine } from "../../packages/cluster/src/testing/network/slow-line.ts";
import { collectChecks } from "./run-checks.mjs";

const CUT_MS = 30_000;
const root = join(import.meta.dirname, "..", "..");
const { values } = parseArgs({ options: { only: { type: "string" }, out: { type: "string" } } });
const { checks, check } = collectChecks((name) => !values.only || name.includes(values.only));
const skipped = [];
const started = performance.now();

const worker = { role: /** @type {const} */ ("worker"), jobMs: 250, slots: 4 };
const seconds = (milliseconds) => `${(milliseconds / 1000).toFixed(1)} s`;

/** A check in a network with two workers and a coordinator that are all at work. */
async function inNetwork(name, jobs, body, missing = whyNoNamespaces()) {
  if (missing) {
    skipped.push({ name, reason: missing });
    console.log(`LEFT OUT ${name}: ${missing}`);
    return;
  }
  await check(name, async () => {
    const training = new TrainingNetwork();
    try {
      await training.server.start();
      const coordinator = training.begin("trainer", { role: "coordinator", jobs });
      const workers = [training.begin("first", worker), training.begin("second", worker)];
      await Promise.all([coordinator.until("lease"), ...workers.map((each) => each.until("begun"))]);
      const note = await body(training, { coordinator, workers });
      await coordinator.until("end", 1, 400_000);
      return [`${jobs} jobs, ${judge(coordinator, jobs)}`, note].filter(Boolean).join("; ");
    } finally {
      await training.dispose();
    }
  });
}

function judge(coordinator, jobs) {
  const faults = findFaults(coordinator, jobs);
  if (faults.length > 0) throw new Error(`${faults.length} faults: ${faults.slice(0, 5).join("; ")}`);
  const { retries } = coordinator.of("end")[0].stats;
  return `each with one result, ${retries} begun again`;
}

/** Milliseconds from `from` until the next event of that name. */
const untilNext = async (peer, name, from) => {
  await peer.until(name, peer.of(name).filter(({ atMs }) => atMs < from).length + 1, 120_000);
  return peer.of(name).find(({ atMs }) => atMs >= from).atMs - from;
};

await inNetwork("a worker is cut off for 30 s", 1_200, async ({ network }, { workers: [first] }) => {
  network.cut("first");
  await sleep(CUT_MS);
  network.mend("first");
  return `it began the next job ${seconds(await untilNext(first, "begun", performance.now()))} after`;
});

await inNetwork(
  "the coordinator is cut off for 30 s, and a standby takes the lease",
  1_200,
  async (training, { coordinator }) => {
    const standby = training.begin("standby", { role: "coordinator" });
    await standby.until("ready");
    const cutAt = performance.now();
    training.network.cut("trainer");
    const lost = await coordinator.until("lost", 1, CUT_MS);
    const taken = await standby.until("lease", 1, CUT_MS);
    if (taken.atMs <= lost.atMs) throw new Error("two held the lease");
    if (taken.term !== 2) throw new Error(`term ${taken.term}, expected 2`);
    await sleep(CUT_MS - (performance.now() - cutAt));
    training.network.mend("trainer");
    const next = await untilNext(coordinator, "result", performance.now());
    return `its signal aborted after ${seconds(lost.atMs - cutAt)}, the standby had the lease after ${seconds(
      taken.atMs - cutAt,
    )}; it had the next result ${seconds(next)} after`;
  },
);

await inNetwork("the server is cut off for 30 s", 400, async ({ network }, { coordinator }) => {
  network.cut("server");
  await sleep(CUT_MS);
  network.mend("server");
  return `the next result came ${seconds(await untilNext(coordinator, "result", performance.now()))} after`;
});

await inNetwork("each line is cut in turn for 5 s, twice", 1_600, async ({ network }) => {
  for (const host of ["first", "trainer", "second", "server", "trainer", "first", "server", "second"]) {
    network.cut(host);
    await sleep(5_000);
    network.mend(host);
    await sleep(2_000);
  }
  return "";
});

await inNetwork(
  "a fifth of all packets is lost, each way",
  100,
  async ({ network }) => {
    for (const host of ["first", "second", "trainer"]) network.lose(host, 20);
    return "";
  },
  whyNoNamespaces() ?? whyNot("loss"),
);

const noDelay = whyNoNamespaces() ?? whyNot("delay");
if (!noDelay) {
  await inNetwork("200 ms each way, by netem", 100, async ({ network }) => {
    for (const host of ["first", "second", "trainer"]) network.delay(host, 200);
    return "";
  });
} else {
  const name = "200 ms each way, by netem";
  skipped.push({ name, reason: noDelay });
  console.log(`LEFT OUT ${name}: ${noDelay}; a proxy delays instead`);
  await check("200 ms each way, by a proxy", async () => {
    const server = new NatsServer();
    await server.start();
    const lines = ["trainer", "first", "second"].map(() => new SlowLine({ host: "127.0.0.1", port: server.port }));
    const [trainerUrl, ...urls] = await Promise.all(lines.map((line) => line.open()));
    for (const line of lines) line.delayMs = 200;
    const peers = [
      new Peer([], { role: "coordinator", id: "trainer", servers: trainerUrl, jobs: 100, bounds: smallBounds }),
    ];
    try {
      await peers[0].until("ready");
      for (const [index, servers] of urls.entries()) peers.push(new Peer([], { ...worker, id: `w${index}`, servers }));
      await peers[0].until("end", 1, 400_000);
      return `100 jobs, ${judge(peers[0], 100)}`;
    } finally {
      await Promise.all(peers.map((peer) => peer.kill()));
      await Promise.all(lines.map((line) => line.close()));
      await server.dispose();
    }
  });
}

const result = {
  date: new Date().toISOString(),
  commit: spawnSync("git", ["rev-parse", "--short", "HEAD"], { cwd: root, encoding: "utf8" }).stdout.trim(),
  node: process.version,
  cpu: cpus()[0]?.model ?? "unknown",
  natsServer: spawnSync("nats-server", ["--version"], { encoding: "utf8" }).stdout.trim(),
  seconds: Math.round((performance.now() - started) / 1000),
  checks,
  skipped,
};
if (values.out) writeFileSync(`${values.out}.json`, `${JSON.stringify(result, null, 2)}\n`);
process.exit(checks.some(({ ok }) => !ok) || checks.length === 0 ? 1 : 0);
