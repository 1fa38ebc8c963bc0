import { createSignal } from "solid-js";

const [names, setNames] = createSignal<ReadonlyMap<string, string>>(new Map());

/** The name of a run in an address: its id until its name is known. */
export function nameOfRun(id: string): string {
  return names().get(id) ?? id;
}

/** Remembers the names of runs. */
export function nameRuns(runs: readonly { id: string; name: string }[]): void {
  setNames((known) =>
    runs.every(({ id, name }) => known.get(id) === name)
      ? known
      : new Map([...known, ...runs.map(({ id, name }) => [id, name] as const)]),
  );
}
