import type { PolicyEngine, PolicySequence } from "@cria/core";

/** Called with the arguments of a method before it runs. */
export type Watchers<T> = {
  [K in keyof T]?: T[K] extends (...args: infer A) => unknown ? (...args: A) => void : never;
};

/** The same object, with some of its methods watched. */
export function watchCalls<T extends object>(target: T, watchers: Watchers<T>): T {
  return new Proxy(target, {
    get(object, name) {
      const value: unknown = Reflect.get(object, name, object);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => {
        (watchers as Record<PropertyKey, ((...args: unknown[]) => void) | undefined>)[name]?.(...args);
        return value.apply(object, args);
      };
    },
  });
}

/** The same engine, watched; `generate` is that of all of its sequences, forks included. */
export function watchEngine(
  engine: PolicyEngine,
  { generate, ...watchers }: Watchers<PolicyEngine> & Pick<Watchers<PolicySequence>, "generate">,
): PolicyEngine {
  const watchSequence = (sequence: PolicySequence): PolicySequence => {
    const watched = watchCalls(sequence, { generate });
    return new Proxy(watched, {
      get: (object, name) => (name === "fork" ? () => watchSequence(sequence.fork()) : Reflect.get(object, name)),
    });
  };
  const watched = watchCalls(engine, watchers);
  return new Proxy(watched, {
    get: (object, name) =>
      name === "createSequence" ? () => watchSequence(engine.createSequence()) : Reflect.get(object, name),
  });
}
