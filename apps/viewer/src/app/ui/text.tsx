import { createSignal, For, Show } from "solid-js";
import { splitControls } from "../logic/visible-text.js";

const FIRST = 12_000;
const MORE = 200_000;

/** Text of a model or a tool: never HTML, with hidden characters made visible, huge texts in portions. */
export function Said(props: { text: string; class?: string }) {
  const [length, setLength] = createSignal(FIRST);
  const shown = () => props.text.slice(0, length());
  return (
    <>
      <div class={`said ${props.class ?? ""}`} dir="auto">
        <For each={splitControls(shown())}>
          {(part) => (part.control ? <span class="control">{part.text}</span> : part.text)}
        </For>
      </div>
      <Show when={props.text.length > length()}>
        <button type="button" class="plain small" onClick={() => setLength(length() + MORE)}>
          Show more: {(props.text.length - length()).toLocaleString("en")} characters are left
        </button>
      </Show>
    </>
  );
}
