import { For } from "solid-js";

/** A choice of one out of a few. */
export function Segmented<T extends string>(props: {
  label: string;
  value: T;
  choices: readonly (readonly [value: T, title: string])[];
  onChange: (value: T) => void;
}) {
  return (
    <fieldset class="segments" aria-label={props.label}>
      <For each={props.choices}>
        {([value, title]) => (
          <button type="button" aria-pressed={props.value === value} onClick={() => props.onChange(value)}>
            {title}
          </button>
        )}
      </For>
    </fieldset>
  );
}
