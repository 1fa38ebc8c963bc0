import { ConfigError, EngineError, type PolicyEngine, type PolicySequence, type PolicyVersion } from "@cria/core";
import { UNNAMED_ROLE } from "@cria/core/internal";
import { isStateful, listTrained, type StatefulEngine, TENSOR_PARTS } from "./stateful-engine.js";

type TrainedEngine = PolicyEngine & StatefulEngine;

/** The trained state of an adapter that is not in the engine. */
interface WaitingAdapter {
  /** Values and moments of each tensor, in the engine's order. */
  tensors: { name: string; parts: Float32Array[] }[];
  stepCount: number;
}

/**
 * An adapter for each role, on one engine. The engine scores and trains with one of them at a time, and the others wait
 * in memory, each with its optimizer's state. A role's sequences are those of a kept version of its adapter, so that
 * all roles are sampled at once.
 */
export class RoleAdapters {
  private readonly waiting = new Map<string, WaitingAdapter>();
  private readonly versions = new Map<string, PolicyVersion>();
  /** The last call; the adapters take turns. */
  private last: Promise<unknown> = Promise.resolve();

  private constructor(
    private readonly live: TrainedEngine,
    /** The role whose adapter is in the engine. */
    private current: string,
  ) {}

  /**
   * Gives each role a copy of the engine's adapter.
   * @throws EngineError for an engine that keeps no versions, or whose tensors cannot be read and written.
   */
  static async open(engine: PolicyEngine, roles: readonly string[]): Promise<RoleAdapters> {
    if (!isStateful(engine) || !engine.keepVersion) {
      throw new EngineError("cannot hold an adapter for each role", {
        code: "engine/not-supported",
        subject: engine.info.path,
        expected: "an engine with readTensor, writeTensor and keepVersion, such as loadModel gives",
        received: "one without",
      });
    }
    const [first, ...others] = roles as [string, ...string[]];
    const adapters = new RoleAdapters(engine as TrainedEngine, first);
    const initial = await adapters.read();
    for (const role of others) adapters.waiting.set(role, { ...initial });
    for (const role of roles) adapters.versions.set(role, await engine.keepVersion());
    return adapters;
  }

  /** The engine with the adapter of a role: it samples, scores, trains, reads and saves this one. */
  engineOf(role: string): TrainedEngine {
    const { live } = this;
    const take = <T>(work: () => Promise<T>) => this.take(role, work);
    const versionOf = () => this.versions.get(role)!;
    const waiting = () => (this.current === role ? live : this.waiting.get(role)!);
    const own: Omit<StatefulEngine, "info" | "listTensors"> &
      Pick<PolicyEngine, "createSequence" | "keepVersion" | "score" | "train" | "saveAdapter"> = {
      createSequence: () => versionOf().engine.createSequence(),
      keepVersion: (options) => take(() => live.keepVersion!(options)),
      score: (...given) => take(() => live.score(...given)),
      train: (...given) =>
        take(async () => {
          const result = await live.train(...given);
          const before = versionOf();
          this.versions.set(role, await live.keepVersion!());
          await before.dispose();
          return result;
        }),
      saveAdapter: (path) => take(() => live.saveAdapter(path)),
      readTensor: (...given) => take(() => live.readTensor(...given)),
      writeTensor: (name, values, part = "value") =>
        take(async () => {
          await live.writeTensor(name, values, part);
          if (part === "value") await (versionOf().engine as TrainedEngine).writeTensor(name, values);
        }),
      get stepCount() {
        return waiting().stepCount;
      },
      set stepCount(count: number) {
        waiting().stepCount = count;
      },
    };
    // Everything else is the engine's: one model, one vocabulary, one store of images.
    return Object.create(live, Object.getOwnPropertyDescriptors(own));
  }

  /** Runs work with a role's adapter in the engine, after all earlier calls. */
  private take<T>(role: string, work: () => Promise<T>): Promise<T> {
    const run = this.last.then(async () => {
      await this.exchange(role);
      return work();
    });
    this.last = run.catch(() => undefined);
    return run;
  }

  private async exchange(role: string): Promise<void> {
    if (this.current === role) return;
    const next = this.waiting.get(role)!;
    this.waiting.set(this.current, await this.read());
    for (const { name, parts } of next.tensors)
      for (const [i, part] of TENSOR_PARTS.entries()) await this.live.writeTensor(name, parts[i]!, part);
    this.live.stepCount = next.stepCount;
    this.current = role;
    this.waiting.delete(role);
  }

  private async read(): Promise<WaitingAdapter> {
    const { live } = this;
    const tensors: WaitingAdapter["tensors"] = [];
    for (const { name } of listTrained(live)) {
      const parts: Float32Array[] = [];
      for (const part of TENSOR_PARTS) parts.push(await live.readTensor(name, part));
      tensors.push({ name, parts });
    }
    return { tensors, stepCount: live.stepCount };
  }
}

type RoleEngines = ReadonlyMap<string, PolicyEngine>;

/**
 * The engine of all roles: its sequences are those of the role that is named. What names no role belongs to the role
 * "policy", if there is one, or needs no adapter.
 */
export function joinRoles(live: PolicyEngine, engines: RoleEngines): PolicyEngine {
  const own: Pick<PolicyEngine, "roles" | "score" | "train" | "saveAdapter"> = {
    roles: [...engines.keys()],
    score: async (sequences, options) =>
      (options?.adapter === false ? live : findRole(engines)).score(sequences, options),
    train: async (...given) => findRole(engines).train(...given),
    saveAdapter: async (path) => findRole(engines).saveAdapter(path),
  };
  return withSequences(Object.create(live, Object.getOwnPropertyDescriptors(own)), engines);
}

/** An engine of all roles whose sequences are those of other engines, such as kept versions. */
export function withSequences(joined: PolicyEngine, engines: RoleEngines): PolicyEngine {
  const createSequence = (role?: string) =>
    engines.get(role ?? UNNAMED_ROLE)?.createSequence() ?? refuseTurns(async () => findRole(engines, role) as never);
  return Object.create(joined, { createSequence: { value: createSequence } });
}

function findRole(engines: RoleEngines, role = UNNAMED_ROLE): PolicyEngine {
  const engine = engines.get(role);
  if (engine) return engine;
  throw makeUnknownRole(role, [...engines.keys()]);
}

function makeUnknownRole(role: string, roles: readonly string[]): ConfigError {
  return new ConfigError("has no adapter", {
    code: "config/unknown-role",
    subject: `role "${role}"`,
    expected: `one of actor_rollout_ref.model.lora_roles: ${roles.join(", ")}`,
    received: role === UNNAMED_ROLE ? "a turn that names no role" : `"${role}"`,
    remedy: "add it to actor_rollout_ref.model.lora_roles, or name the role in each call",
  });
}

/** An empty sequence that samples nothing: loops get one before they name a role. */
function refuseTurns(refuse: () => Promise<never>): PolicySequence {
  return {
    tokenCount: 0,
    generate: refuse,
    prefill: refuse,
    fork: () => refuseTurns(refuse),
    dispose: () => undefined,
  };
}
