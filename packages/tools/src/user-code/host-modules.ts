/**
 * Modules of the running program that users' modules import by name: what they import is then the same, not a copy, wherever
 * their files lie. A module that nobody has provided is looked for beside the user's file.
 */
const hostModules: Record<string, unknown> = {};

/** Adds modules by the name that users import. */
export function provideHostModules(modules: Readonly<Record<string, unknown>>): void {
  Object.assign(hostModules, modules);
}

export function listHostModules(): Readonly<Record<string, unknown>> {
  return hostModules;
}
