/**
 * Modules of the running program that users' modules import by name: these imports give the same module, not a copy,
 * from any folder. Other modules are resolved from the user's file.
 */
const hostModules: Record<string, unknown> = {};

/** Adds modules by the name that users import. */
export function provideHostModules(modules: Readonly<Record<string, unknown>>): void {
  Object.assign(hostModules, modules);
}

export function listHostModules(): Readonly<Record<string, unknown>> {
  return hostModules;
}
