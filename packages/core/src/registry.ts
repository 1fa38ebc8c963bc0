import { ConfigError } from "./errors/config-error.js";

/** Named pure functions of one kind; users add their own. */
export class Registry<T> {
  private readonly entries: Map<string, T>;

  constructor(
    private readonly kind: string,
    entries: Readonly<Record<string, T>> = {},
  ) {
    this.entries = new Map(Object.entries(entries));
  }

  register(name: string, entry: T): void {
    this.entries.set(name, entry);
  }

  names(): string[] {
    return [...this.entries.keys()].sort();
  }

  /** @throws ConfigError that lists what there is. */
  get(name: string): T {
    const entry = this.entries.get(name);
    if (entry) return entry;
    throw new ConfigError(`is not a registered ${this.kind}`, {
      code: "config/unknown-name",
      subject: this.kind,
      expected: this.names().join(", "),
      received: name,
      remedy: "use one of these, or register your own",
    });
  }
}
