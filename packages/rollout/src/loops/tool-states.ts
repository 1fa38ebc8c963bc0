/** The states of a conversation's tools at the end of a turn. */
export interface ToolStates {
  /** By tool, what its `snapshot` gave; a tool without `snapshot` and `restore` has none. */
  snapshots: ReadonlyMap<string, unknown>;
  /** A copy of what the tools and the interaction share. */
  agentData: Record<string, unknown>;
}

/** A conversation's tools, whose states can be kept and given to those of another conversation of the row. */
export interface KeptTools {
  /** @throws ToolError when a tool cannot say its state. */
  save(): Promise<ToolStates>;
  /** @throws ToolError when a tool cannot be brought to its state. */
  restore(states: ToolStates): Promise<void>;
}
