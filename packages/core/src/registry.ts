import { ConfigError } from "./errors/config-error.js";

/** How an unknown name is reported. */
export interface RegistryErrors {
  /** What the name is called where it stands, such as a config key. Default: the kind. */
  subject?: string;
  /** What may stand there beside registered names, such as "./module.ts#export". */
  alternative?: string;
  /** Default: to use a registered name, or to register one. */
  remedy?: string;
}

/**
 * Named things of one kind. A registry of a package holds what is built in and what programs register; each run extends it,
 * so that what its config loads is known to that run alone.
 */
export class Registry<T> {
  private readonly own: Map<string, T>;
  private parent: Registry<T> | null = null;

  /** @param kind a noun, for errors: "policy loss". */
  constructor(
    readonly kind: string,
    entries: Readonly<Record<string, T>> = {},
    private readonly errors: RegistryErrors = {},
  ) {
    this.own = new Map(Object.entries(entries));
  }

  /** A registry that has all that this one has, now and later; what is registered there stays there, and goes before. */
  extend(): Registry<T> {
    const child = new Registry<T>(this.kind, {}, this.errors);
    child.parent = this;
    return child;
  }

  /** A later entry of the same name replaces the earlier one. */
  register(name: string, entry: T): void {
    this.own.set(name, entry);
  }

  /** All names, sorted. */
  names(): string[] {
    return [...new Set([...this.own.keys(), ...(this.parent?.names() ?? [])])].sort();
  }

  find(name: string): T | undefined {
    return this.own.get(name) ?? this.parent?.find(name);
  }

  /** @throws ConfigError that lists what there is. */
  get(name: string): T {
    const entry = this.find(name);
    if (entry !== undefined) return entry;
    const { subject = this.kind, alternative, remedy = "use one of these, or register your own" } = this.errors;
    throw new ConfigError(`is not ${/^[aeiou]/i.test(this.kind) ? "an" : "a"} ${this.kind}`, {
      code: "config/unknown-name",
      subject,
      expected: [this.names().join(", "), ...(alternative === undefined ? [] : [alternative])].join(", or "),
      received: name,
      remedy,
    });
  }

  /** What a name stands for, or the thing itself where no name is given. @throws ConfigError that lists what there is. */
  resolve(given: string | T): T {
    return typeof given === "string" ? this.get(given) : given;
  }
}
