import { createEffect, For } from "solid-js";
import { scopes } from "../keys.js";

const SHORT: Record<string, string> = { ArrowDown: "↓", ArrowUp: "↑", ArrowLeft: "←", ArrowRight: "→", Escape: "Esc" };

/** All keys with an effect on this page. */
export function Help(props: { open: boolean; close: () => void }) {
  let dialog!: HTMLDialogElement;
  createEffect(() => {
    if (props.open) dialog.showModal();
    else dialog.close();
  });
  return (
    <dialog ref={dialog} class="help" aria-label="Keyboard" onClose={() => props.close()}>
      <div class="help-head">
        <h1>Keyboard</h1>
        <button type="button" class="plain push" onClick={() => props.close()}>
          Close
        </button>
      </div>
      <div class="help-body">
        <For each={[...scopes()].reverse()}>
          {(scope) => (
            <section>
              <h2>{scope.title}</h2>
              <dl class="keys-values">
                <For each={scope.bindings}>
                  {({ keys, does }) => (
                    <>
                      <dt>
                        <For each={keys.split(" ")}>{(key) => <kbd>{SHORT[key] ?? key}</kbd>}</For>
                      </dt>
                      <dd>{does}</dd>
                    </>
                  )}
                </For>
              </dl>
            </section>
          )}
        </For>
      </div>
    </dialog>
  );
}
