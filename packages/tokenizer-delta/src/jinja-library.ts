import { Environment as LibraryEnvironment, Interpreter as LibraryInterpreter, Template } from "@huggingface/jinja";

// Types of the used parts of the library, because its own types do not resolve under Node's rules.

/** A node of a parsed program; its other fields depend on its type. */
export interface Node {
  type: string;
  [key: string]: unknown;
}

/** A value while a template runs: `type` is the name of its class. */
export interface Value {
  type: string;
  value: unknown;
}

export interface Environment {
  /** @throws Error when the name is taken. */
  set(name: string, value: unknown): Value;
}
export const Environment = LibraryEnvironment as unknown as new () => Environment;

/** Every step of a template goes through `evaluate`. */
export interface Interpreter {
  run(program: Node): Value;
  evaluate(node: Node | undefined, environment: Environment): Value;
}
export const Interpreter = LibraryInterpreter as unknown as new (environment: Environment) => Interpreter;

/** @throws Error for an invalid template. */
export function parseProgram(source: string): Node {
  return new Template(source).parsed as unknown as Node;
}

type Format = (args: readonly { value: string }[]) => { value: string };
let format: Format | undefined;

/** The library's strftime_now, which it only provides to templates. */
export function formatNow(pattern: string): string {
  const take = (given: Format) => {
    format = given;
  };
  if (!format) new Template("{{ take(strftime_now) }}").render({ take });
  return format!([{ value: pattern }]).value;
}
