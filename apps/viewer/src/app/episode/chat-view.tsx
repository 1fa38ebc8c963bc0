import type { ChatMessage, ToolSchema } from "@cria/core";
import type { DumpLine } from "@cria/records";
import { createMemo, createSignal, For, Match, Show, Switch } from "solid-js";
import { bindKeys } from "../keys.js";
import { formatNumber, formatSeconds } from "../logic/format.js";
import { type ShownMessage, splitConversation } from "../logic/split-conversation.js";
import { showControls } from "../logic/visible-text.js";
import { Picture } from "../ui/picture.js";
import { Said } from "../ui/text.js";

/** A conversation as a chat: calls, answers, errors; thinking and tools' schemas folded. */
export function ChatView(props: { line: DumpLine; schemas: readonly ToolSchema[]; messages?: readonly ChatMessage[] }) {
  const messages = createMemo(() => splitConversation(props.line, props.messages));
  const cards: HTMLElement[] = [];
  const [at, setAt] = createSignal(-1);
  const move = (by: number) => {
    const next = Math.max(0, Math.min(messages().length - 1, at() + by));
    setAt(next);
    cards[next]?.scrollIntoView({ block: "nearest" });
  };
  bindKeys("Chat", [
    { keys: "j", does: "Next message", run: () => move(1) },
    { keys: "k", does: "Previous message", run: () => move(-1) },
  ]);
  return (
    <div class="chat">
      <Show when={props.schemas.length > 0}>
        <details class="fold">
          <summary>
            {props.schemas.length} tool{props.schemas.length === 1 ? "" : "s"}:{" "}
            <span class="mono">{showControls(props.schemas.map((schema) => schema.function.name).join(", "))}</span>
          </summary>
          <For each={props.schemas}>
            {(schema) => (
              <div class="schema">
                <strong class="mono">{showControls(schema.function.name)}</strong>{" "}
                <span class="soft">{showControls(schema.function.description ?? "")}</span>
                <Said text={JSON.stringify(schema.function.parameters, null, 2)} />
              </div>
            )}
          </For>
        </details>
      </Show>
      <For each={messages()}>
        {(message, i) => (
          <article
            class={`message ${message.role}`}
            classList={{ failed: message.failure !== null, at: at() === i() }}
            ref={(element) => (cards[i()] = element)}
            aria-label={`Message ${i() + 1}: ${message.role}`}
          >
            <MessageHead message={message} line={props.line} />
            <For each={message.parts}>
              {(part) => (
                <Switch>
                  <Match when={part.kind === "thinking" && part}>
                    {(thinking) => (
                      <details class="fold">
                        <summary>Thinking, {thinking().text.length.toLocaleString("en")} characters</summary>
                        <Said text={thinking().text} class="soft" />
                      </details>
                    )}
                  </Match>
                  <Match when={part.kind === "call" && part}>
                    {(call) => (
                      <div class="call" classList={{ invalid: !call().valid }}>
                        <div class="row">
                          <span class="call-name mono">{showControls(call().name) || "unreadable call"}</span>
                          <Show when={!call().valid}>
                            <span class="pill bad">no valid JSON</span>
                          </Show>
                        </div>
                        <Said text={call().arguments} />
                      </div>
                    )}
                  </Match>
                  <Match when={part.kind === "image" && part}>{(shown) => <Picture image={shown().image} />}</Match>
                  <Match when={part.kind === "text" && part}>
                    {(text) => (
                      <Show when={text().text !== ""} fallback={<p class="soft small">(no text)</p>}>
                        <Said text={text().text} />
                      </Show>
                    )}
                  </Match>
                </Switch>
              )}
            </For>
          </article>
        )}
      </For>
    </div>
  );
}

function MessageHead(props: { message: ShownMessage; line: DumpLine }) {
  const sampled = () => {
    const turn = props.message.turn;
    if (!turn || props.message.role !== "assistant") return null;
    return turn.end - turn.start;
  };
  const isShared = () => {
    const { turn, role } = props.message;
    return role === "assistant" && turn !== null && turn.end <= (props.line.branch?.tokens ?? 0);
  };
  const seconds = () => {
    const { started_at, ended_at } = props.message.turn ?? {};
    return started_at === undefined || ended_at === undefined ? null : (ended_at - started_at) / 1000;
  };
  return (
    <header>
      <span class={`role ${props.message.role}`}>{props.message.role}</span>
      <Show when={props.message.turn?.sampled_by === "teacher"}>
        <span class="pill" title="The teacher sampled this turn; the policy does not learn from it">
          teacher
        </span>
      </Show>
      <Show when={isShared()}>
        <span class="pill" title={`Taken over from sample ${props.line.branch!.parent}`}>
          shared
        </span>
      </Show>
      <Show when={props.message.name}>{(name) => <span class="mono small">{showControls(name())}</span>}</Show>
      <Show when={props.message.failure}>{(failure) => <span class="pill bad">{failure()}</span>}</Show>
      <For each={props.message.rewards}>
        {(reward) => (
          <span class={`pill ${reward.value < 0 ? "bad" : "good"}`}>
            {reward.from === "tool" ? "tool's reward" : "turn's score"} {formatNumber(reward.value)}
          </span>
        )}
      </For>
      <span class="soft small push">
        {[sampled() === null ? null : `${sampled()} tokens`, seconds() === null ? null : formatSeconds(seconds()!)]
          .filter(Boolean)
          .join(" · ")}
      </span>
    </header>
  );
}
