import { createSignal, Show } from "solid-js";

const [toast, setToast] = createSignal("");
let timer: ReturnType<typeof setTimeout> | undefined;

/** Says something short at the bottom of the page. */
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

/** Copies what a view shows, as JSON. */
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

/** What one does next with what a page shows, in a terminal: copies the command. */
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

/** The clipboard's own interface exists on safe addresses alone: not on those of another machine by http. */
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
