import { createSignal, Show } from "solid-js";

const [toast, setToast] = createSignal("");
let timer: ReturnType<typeof setTimeout> | undefined;

/** Shows a short message at the bottom of the page. */
export function say(text: string): void {
  clearTimeout(timer);
  setToast(text);
  timer = setTimeout(() => setToast(""), 2200);
}

export function Toast() {
  return (
    <div role="status" aria-live="polite">
      <Show when={toast()}>
        <div class="toast">{toast()}</div>
      </Show>
    </div>
  );
}

/** Copies a view's data as JSON. */
export function CopyJson(props: { value: () => unknown; of?: string }) {
  const copy = async () => {
    const text = JSON.stringify(props.value() ?? null, null, 2);
    await copyText(text, `Copied ${text.length.toLocaleString("en")} characters of JSON`);
  };
  return (
    <button type="button" class="plain" onClick={copy} aria-label={`Copy JSON: ${props.of ?? "this view"}`}>
      JSON
    </button>
  );
}

/** Copies the terminal command for the next action on a page's data. */
export function CopyCommand(props: { does: string; command: string }) {
  return (
    <button
      type="button"
      onClick={() => copyText(props.command, `Copied: ${props.command}`)}
      title={`Copies: ${props.command}`}
    >
      {props.does}
    </button>
  );
}

async function copyText(text: string, done: string): Promise<void> {
  try {
    await writeClipboard(text);
    say(done);
  } catch {
    say("The browser refuses to copy");
  }
}

/** Writes to the clipboard. Its own interface only exists on secure addresses, not on another machine's by http. */
async function writeClipboard(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "visually-hidden";
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  if (!copied) throw new Error("not copied");
}
