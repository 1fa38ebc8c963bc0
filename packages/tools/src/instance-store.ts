import { ToolError } from "@cria/core";

const lifecycles = {
  tool: "create before, release after all other calls",
  interaction: "startInteraction before, finalizeInteraction after all other calls",
} as const;

/** State of each running conversation, by instance id. */
export class InstanceStore<State> {
  private readonly states = new Map<string, State>();

  /** @param owner the tool or interaction of the states, for errors. */
  constructor(
    private readonly owner: string,
    private readonly kind: keyof typeof lifecycles = "interaction",
  ) {}

  get size(): number {
    return this.states.size;
  }

  has(instanceId: string): boolean {
    return this.states.has(instanceId);
  }

  start(instanceId: string, state: State): void {
    this.states.set(instanceId, state);
  }

  /** @throws ToolError for an instance that was not started, or has ended. */
  get(instanceId: string): State {
    if (this.states.has(instanceId)) return this.states.get(instanceId) as State;
    throw new ToolError("is not running", {
      code: `${this.kind}/unknown-instance`,
      subject: `instance ${instanceId} of ${this.owner}`,
      expected: lifecycles[this.kind],
    });
  }

  end(instanceId: string): void {
    this.states.delete(instanceId);
  }
}
