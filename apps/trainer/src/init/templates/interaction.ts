export const interactionTemplate = `import { BaseInteraction, type ChatMessage, findLastAnswer, type InteractionReply, type StartKwargs } from "cria";

interface State {
  truth: number;
  attempts: number;
  solved: boolean;
}

/** Who answers the model when it makes no tool call. One object serves all conversations: keep state by instanceId. */
export class MyInteraction extends BaseInteraction {
  private readonly states = new Map<string, State>();

  /** Before the first turn. kwargs: the row's ground_truth, and its extra_info.interaction_kwargs. */
  override async startInteraction(instanceId: string, kwargs: StartKwargs = {}) {
    this.states.set(instanceId, { truth: Number(kwargs.ground_truth), attempts: 0, solved: false });
  }

  /** After each answer: the next user message, or the end. score goes to the turn that was answered. */
  override async generateResponse(instanceId: string, messages: readonly ChatMessage[]): Promise<InteractionReply> {
    const state = this.states.get(instanceId)!;
    state.attempts++;
    const answer = /####\\s*(-?[\\d.,]+)/.exec(findLastAnswer(messages));
    state.solved = answer !== null && Number(answer[1]!.replaceAll(",", "")) === state.truth;
    return {
      shouldTerminate: state.solved || state.attempts >= Number(this.config.max_attempts ?? 2),
      content: state.solved ? "Right." : "That is wrong. Use the tool to compute, then answer with ####.",
      score: 0,
      data: { solved: state.solved ? 1 : 0 },
    };
  }

  /** At the end: the reward of the conversation, where the config names no reward function. */
  override async calculateScore(instanceId: string) {
    return this.states.get(instanceId)!.solved ? 1 : 0;
  }

  /** When the conversation has ended, however it ended. */
  override async finalizeInteraction(instanceId: string) {
    this.states.delete(instanceId);
  }
}
`;
