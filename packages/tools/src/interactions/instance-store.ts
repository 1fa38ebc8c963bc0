import { ToolError } from "@cria/core";

/** State of each running conversation, by instance id. */
export class InstanceStore<State> {
  private readonly states = new Map<string, State>();

  constructor(private readonly owner: string) {}

  get size(): number {
    return this.states.size;
  }

  start(instanceId: string, state: State): void {
    this.states.set(instanceId, state);
  }

  /** @throws ToolError for an instance that was not started, or was finalized. */
  get(instanceId: string): State {
    const state = this.states.get(instanceId);
    if (state !== undefined) return state;
    throw new ToolError("is not running", {
      code: "interaction/unknown-instance",
      subject: `instance ${instanceId} of ${this.owner}`,
      expected: "startInteraction before, finalizeInteraction after all other calls",
    });
  }

  end(instanceId: string): void {
    this.states.delete(instanceId);
  }
}
