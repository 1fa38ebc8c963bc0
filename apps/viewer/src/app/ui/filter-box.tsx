import { type JSX, Show } from "solid-js";

/** The marks under a mistake, which only align in a terminal. */
const MARKS = /\n[ ^]+$/;

/** Filter (the language of `cria show --filter`) and search, applied by Enter or after a pause in typing. */
export function FilterBox(props: {
  filter: string;
  search: string;
  problem: string | null;
  onFilter: (filter: string) => void;
  onSearch: (search: string) => void;
  children?: JSX.Element;
}) {
  return (
    <div class="filters">
      <Field
        label="Filter conversations"
        placeholder="Filter  /   reward < 1 && tool_errors > 0"
        value={props.filter}
        onChange={props.onFilter}
        mono
        first
        invalid={props.problem !== null}
      />
      <Field
        label="Search in the text"
        placeholder="Search in the text"
        value={props.search}
        onChange={props.onSearch}
      />
      {props.children}
      <Show when={props.problem}>
        <pre class="filter-problem bad" role="alert" id="filter-problem">
          {props.problem!.replace(MARKS, "")}
        </pre>
      </Show>
    </div>
  );
}

function Field(props: {
  label: string;
  placeholder: string;
  value: string;
  onChange: (value: string) => void;
  mono?: boolean;
  first?: boolean;
  invalid?: boolean;
}) {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const later = (value: string) => {
    clearTimeout(timer);
    timer = setTimeout(() => props.onChange(value), 350);
  };
  const now = (value: string) => {
    clearTimeout(timer);
    props.onChange(value);
  };
  return (
    <input
      type="search"
      data-filter={props.first ? "" : undefined}
      class={props.mono ? "mono grow" : "grow"}
      aria-label={props.label}
      aria-invalid={props.invalid ? "true" : undefined}
      aria-describedby={props.invalid ? "filter-problem" : undefined}
      placeholder={props.placeholder}
      value={props.value}
      spellcheck={false}
      autocomplete="off"
      onInput={(event) => later(event.currentTarget.value)}
      onKeyDown={(event) => event.key === "Enter" && now(event.currentTarget.value)}
    />
  );
}
