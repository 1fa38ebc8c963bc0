import { ConfigError } from "./errors/config-error.js";

/** Options for the error of an unknown name. */
export interface RegistryErrors {
  /** Name of the place that contains the name, such as a config key. Default: the kind. */
  subject?: string;
  /** Alternative to a registered name, such as "./module.ts#export". */
  alternative?: string;
  /** Default: to use a registered name, or to register one. */
  remedy?: string;
}

/**
 * Named entries of one kind. A package's registry holds built-in entries and those that programs register. Each run
 * extends it, so that entries loaded by its config are known only to that run.
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

  /**
   * A registry with all current and future entries of this one. Entries registered in it stay in it, and take
   * precedence.
   */
  extend(): Registry<T> {
    const child = new Registry<T>(this.kind, {}, this.errors);
    child.parent = this;
    return child;
  }

  /** A later entry replaces an earlier one of the same name. */
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

  /**
   * @param errors details of this place, which override the registry's own.
   * @throws ConfigError that lists the registered names.
   */
  get(name: string, errors: RegistryErrors = {}): T {
    const entry = this.find(name);
    if (entry !== undefined) return entry;
    const {
      subject = this.kind,
      alternative,
      remedy = "use one of these, or register your own",
    } = { ...this.errors, ...errors };
    throw new ConfigError(`is not ${/^[aeiou]/i.test(this.kind) ? "an" : "a"} ${this.kind}`, {
      code: "config/unknown-name",
      subject,
      expected: [this.names().join(", "), ...(alternative === undefined ? [] : [alternative])].join(", or "),
      received: name,
      remedy,
    });
  }

  /**
   * The entry of a name; anything that is not a name is returned unchanged.
   * @param errors as of `get`.
   * @throws ConfigError that lists the registered names.
   */
  resolve(given: string | T, errors: RegistryErrors = {}): T {
    return typeof given === "string" ? this.get(given, errors) : given;
  }
}
