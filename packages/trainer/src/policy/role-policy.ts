import type { PolicyVersion } from "@cria/core";
import { checkOptions } from "@cria/core/internal";
import { nameForRole } from "./of-role.js";
import { KeptPolicy, keepChecks, Policy, type PolicyParts } from "./policy.js";
import { joinRoles, RoleAdapters, withSequences } from "./role-adapters.js";

/**
 * A policy with an adapter for each role that it plays. Its conversations are sampled by the adapters of their roles;
 * `roles` has the policies that are scored and trained.
 */
export class RolePolicy extends Policy {
  private constructor(
    parts: PolicyParts,
    override readonly roles: ReadonlyMap<string, Policy>,
  ) {
    const engines = new Map([...roles].map(([role, { engine }]) => [role, engine]));
    super({ ...parts, engine: joinRoles(parts.engine, engines) });
  }

  /** @throws EngineError for an engine that cannot hold several adapters. */
  static async open(parts: PolicyParts, roles: readonly string[]): Promise<RolePolicy> {
    const adapters = await RoleAdapters.open(parts.engine, roles);
    const policies = roles.map((role) => [role, new Policy({ ...parts, engine: adapters.engineOf(role) })] as const);
    return new RolePolicy(parts, new Map(policies));
  }

  /** Number of updates of each role's adapter. */
  override get updates(): number {
    return [...this.roles.values()][0]!.updates;
  }

  /** As `Policy.keepVersion`; `path` is the name of the files' family, one for each role (`nameForRole`). */
  override async keepVersion(options: { path?: string; updates?: number } = {}) {
    checkOptions("policy.keepVersion", options, keepChecks);
    const { path, updates = this.updates } = options;
    const kept = new Map<string, KeptPolicy>();
    for (const [role, policy] of this.roles)
      kept.set(
        role,
        await policy.keepVersion({ updates, ...(path === undefined ? {} : { path: nameForRole(path, role) }) }),
      );
    const versions = [...kept];
    const version: PolicyVersion = {
      engine: withSequences(this.engine, new Map(versions.map(([role, { engine }]) => [role, engine]))),
      save: async (file) => {
        for (const [role, own] of versions) await own.save(nameForRole(file, role));
      },
      dispose: async () => {
        for (const [, own] of versions) await own.dispose();
      },
    };
    return new KeptPolicy(this, version, updates, kept);
  }

  /** Writes a whole model for each role. */
  override async export(file: string, options?: { quantize?: string }): Promise<void> {
    for (const [role, policy] of this.roles) await policy.export(nameForRole(file, role), options);
  }

  /** Writes each role's adapter: adapter_<role>.gguf for adapter.gguf. */
  override async save(file: string): Promise<void> {
    for (const [role, policy] of this.roles) await policy.save(nameForRole(file, role));
  }
}
