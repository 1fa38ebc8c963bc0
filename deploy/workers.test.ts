import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, expect, it } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { describeWithNats, NatsServer } from "../packages/cluster/src/testing/nats-server.js";

// Carries out the files' commands, folders and mounts without containers.
const here = import.meta.dirname;
const root = join(here, "..");
const read = (file: string) => readFileSync(join(here, file), "utf8");
const services = parse(read("compose.yaml")).services;
const [deployment] = parseAllDocuments(read("kubernetes/workers.yaml")).map((document) => document.toJS());
const pod = deployment.spec.template.spec;

/** A folder of the host for each path at which a container has one. */
type Mounts = Record<string, string>;

describeWithNats("workers as the files start them", () => {
  const folder = mkdtempSync(join(tmpdir(), "cria-deploy-"));
  const server = new NatsServer();
  const children: ChildProcess[] = [];
  afterAll(async () => {
    for (const child of children) child.kill("SIGKILL");
    await server.dispose();
    rmSync(folder, { recursive: true, force: true });
  });
  const make = (name: string) => {
    const path = join(folder, name);
    mkdirSync(path, { recursive: true });
    return path;
  };

  /**
   * Starts `cria` as a container would: its paths are those of the mounts, HOME and the working directory as the image
   * has them.
   */
  function start(words: readonly string[], mounts: Mounts, workingDir: string): ChildProcess {
    const onHost = (path: string) => {
      const mount = Object.keys(mounts).find((at) => path === at || path.startsWith(`${at}/`));
      if (mount !== undefined) return join(mounts[mount]!, path.slice(mount.length));
      // A folder in which others are mounted.
      const inner = Object.keys(mounts).find((at) => at.startsWith(`${path}/`));
      expect(inner, `nothing is mounted at ${path}`).toBeDefined();
      return mounts[inner!]!.slice(0, -inner!.slice(path.length).length);
    };
    const given = words.map((word) => (word.startsWith("/") ? onHost(word) : word));
    const child = spawn(process.execPath, [join(root, "apps", "trainer", "bin", "cria.mjs"), ...given], {
      cwd: onHost(workingDir),
      env: { PATH: process.env.PATH, HOME: onHost("/data"), NODE_ENV: "production" },
      stdio: ["ignore", "pipe", "pipe"],
    });
    children.push(child);
    return child;
  }

  /** The command line without the options of the bus and its credentials. */
  const withoutBus = (words: readonly string[]) =>
    words.filter(
      (word, i) => ![word, words[i - 1]].some((each) => ["--bus", "--ca", "--creds", "--nkey"].includes(each!)),
    );
  const bus = () => ["--bus", server.url];
  const composeMounts = ({ volumes }: { volumes: string[] }, places: Record<string, string>): Mounts =>
    Object.fromEntries(
      volumes.map((volume) => {
        const [, source, target] = /^(\$\{TRAINING:-[^}]*\}|[\w-]+):([^:]+)/.exec(volume)!;
        return [target!, source!.startsWith("$") ? places.training! : places[source!]!];
      }),
    );

  it("hold conversations", async () => {
    await server.start();
    const training = make("training");
    cpSync(join(root, "examples", "calculator"), training, { recursive: true });
    cpSync(join(root, "models", "cria-tiny.gguf"), join(training, "policy.gguf"));

    const places = { training, models: make("models") };
    const inCompose = start(
      ["worker", ...withoutBus(services.worker.command), ...bus(), "--id", "compose", "--json", "--threads", "1"],
      composeMounts(services.worker, places),
      "/data",
    );

    // Kubernetes mounts a ConfigMap of the folder's files like this: links into a folder that begins with a dot.
    const mounts: Mounts = {};
    const [container] = pod.containers;
    for (const { name, mountPath } of container.volumeMounts) {
      const { configMap } = pod.volumes.find((volume: { name: string }) => volume.name === name);
      const mounted = make(join("pod", mountPath));
      mounts[mountPath] = mounted;
      if (!configMap) continue;
      expect(configMap.name).toBe("cria-code");
      mkdirSync(join(mounted, "..data"));
      for (const entry of readdirSync(training, { withFileTypes: true })) {
        if (!entry.isFile()) continue;
        cpSync(join(training, entry.name), join(mounted, "..data", entry.name));
        symlinkSync(join("..data", entry.name), join(mounted, entry.name));
      }
    }
    const inPod = start(
      ["worker", ...withoutBus(container.args), ...bus(), "--id", "pod", "--json", "--threads", "1"],
      mounts,
      "/data",
    );

    const { coordinator } = services;
    const overrides = [
      "actor_rollout_ref.model.path=policy.gguf",
      "trainer.threads=1",
      "trainer.total_training_steps=1",
      "trainer.val_before_train=false",
      "data.val_files=null",
      "data.train_batch_size=4",
      "actor_rollout_ref.rollout.n=4",
      "cluster.wait_for_workers=2",
      "cluster.take_part=false",
    ];
    const trainer = start(
      [coordinator.entrypoint[1], ...withoutBus(coordinator.command), ...overrides, ...bus()],
      composeMounts(coordinator, places),
      coordinator.working_dir,
    );
    const ended = findEnd(trainer);
    const kinds = await Promise.race([Promise.all([inCompose, inPod].map(findKinds)), ended]);
    expect(kinds).toEqual([
      ["rollout", "score", "gradient"],
      ["rollout", "score", "gradient"],
    ]);
    expect(await ended).toBe(0);
  });
});

/**
 * @returns 0.
 * @throws Error with the output of a process that fails.
 */
async function findEnd(child: ChildProcess): Promise<number> {
  let log = "";
  for (const stream of [child.stdout!, child.stderr!])
    stream.on("data", (text) => {
      log += text;
    });
  const [code] = await once(child, "exit");
  if (code !== 0) throw new Error(`it ended with ${code}:\n${log}`);
  return code;
}

/**
 * The jobs that a prepared worker takes.
 * @throws Error with its output when it cannot help.
 */
async function findKinds(worker: ChildProcess): Promise<string[]> {
  let log = "";
  worker.stderr!.on("data", (text) => {
    log += text;
  });
  for await (const line of createInterface({ input: worker.stdout! })) {
    const { state, kinds } = JSON.parse(line);
    if (state === "working") return kinds;
  }
  throw new Error(`a worker ended:\n${log}`);
}
