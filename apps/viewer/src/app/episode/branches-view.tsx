import type { ChatMessage } from "@cria/core";
import type { DumpLine } from "@cria/records";
import { createMemo, createSignal, For } from "solid-js";
import { listRoles, readBranch, showContent } from "../logic/split-conversation.js";
import { showControls } from "../logic/visible-text.js";
import { ChatView } from "./chat-view.js";

/**
 * The message graph of an agent with several conversations: its segments as a tree, and the chat down to one of them.
 */
export function BranchesView(props: { line: DumpLine }) {
  const segments = () => props.line.segments ?? [];
  const depths = createMemo(() => {
    const found: number[] = [];
    segments().forEach(({ parent }, i) => {
      found[i] = parent >= 0 && parent < i ? found[parent]! + 1 : 0;
    });
    return found;
  });
  const [at, setAt] = createSignal(segments().length - 1);
  const messages = createMemo(() => readBranch(props.line, at()));
  return (
    <div class="branches">
      <nav aria-label="Branches">
        <ol class="tree">
          <For each={segments()}>
            {(segment, i) => (
              <li>
                <button
                  type="button"
                  class={`plain depth-${Math.min(8, depths()[i()]!)}`}
                  aria-current={at() === i() ? "true" : undefined}
                  onClick={() => setAt(i())}
                >
                  <span class="soft">{segment.parent < 0 ? "●" : "└"}</span>
                  <span class="tree-text">{summarize(segment.messages)}</span>
                  <span class="soft small">{listRoles(props.line, i()).join(", ")}</span>
                  <span class="soft small">{segment.end - segment.start}</span>
                </button>
              </li>
            )}
          </For>
        </ol>
      </nav>
      <ChatView line={props.line} schemas={[]} messages={messages()} />
    </div>
  );
}

function summarize(messages: readonly ChatMessage[]): string {
  const last = messages.at(-1);
  if (!last) return "nothing new";
  return `${last.role}: ${showControls(showContent(last.content)).slice(0, 60)}`;
}
