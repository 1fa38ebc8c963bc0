import { type AgentState, CriaError, type RequestState, type StateTransition } from "@cria/core";
import { now } from "@cria/episodes";

type Edges<State extends string> = Record<State, readonly State[]>;

const agentEdges: Edges<AgentState> = {
  pending: ["generating", "terminated"],
  generating: ["processing_tools", "interacting", "terminated"],
  processing_tools: ["generating", "terminated"],
  interacting: ["generating", "terminated"],
  terminated: [],
};

const requestEdges: Edges<RequestState> = {
  pending: ["running", "failed"],
  running: ["tool_calling", "interacting", "completed", "failed"],
  tool_calling: ["running", "completed", "failed"],
  interacting: ["running", "completed", "failed"],
  completed: [],
  failed: [],
};

/** A state machine that records when it entered which state. */
export class StateLog<State extends string> {
  readonly transitions: StateTransition<State>[];

  constructor(
    private readonly edges: Edges<State>,
    initial: State,
    /** Called with each state as it is entered; `before` is null for the first. */
    private readonly onState?: (state: State, before: State | null) => void,
  ) {
    this.transitions = [{ state: initial, at: now() }];
    onState?.(initial, null);
  }

  get state(): State {
    return this.transitions.at(-1)!.state;
  }

  /** Re-entering the current state does nothing. @throws CriaError for an invalid transition. */
  enter(state: State): void {
    if (state === this.state) return;
    if (!this.edges[this.state].includes(state)) {
      throw new CriaError("entered a state that cannot follow", {
        code: "rollout/illegal-transition",
        subject: "state machine of a conversation",
        expected: `${this.state}, then ${this.edges[this.state].join(" or ") || "nothing"}`,
        received: state,
      });
    }
    const before = this.state;
    this.transitions.push({ state, at: now() });
    this.onState?.(state, before);
  }
}

export function createAgentLog(): StateLog<AgentState> {
  return new StateLog(agentEdges, "pending");
}

export type OnRequestState = (state: RequestState, before: RequestState | null) => void;

export function createRequestLog(onState?: OnRequestState): StateLog<RequestState> {
  return new StateLog(requestEdges, "pending", onState);
}
