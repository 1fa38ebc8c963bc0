import { createSignal } from "solid-js";

const [names, setNames] = createSignal<ReadonlyMap<string, string>>(new Map());

/** What the run of an address is called: its id until its name is known. */
export function nameOfRun(id: string): string {
  return names().get(id) ?? id;
}

/** Remembers what runs are called. */
export function nameRuns(runs: readonly { id: string; name: string }[]): void {
  setNames((known) =>
    runs.every(({ id, name }) => known.get(id) === name)
      ? known
      : new Map([...known, ...runs.map(({ id, name }) => [id, name] as const)]),
  );
}
