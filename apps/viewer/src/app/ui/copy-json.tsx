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
    try {
      await writeClipboard(text);
      say(`Copied ${text.length.toLocaleString("en")} characters of JSON`);
    } catch {
      say("The browser refuses to copy");
    }
  };
  return (
    <button type="button" class="plain" onClick={copy} aria-label={`Copy JSON: ${props.of ?? "this view"}`}>
      Copy JSON
    </button>
  );
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
