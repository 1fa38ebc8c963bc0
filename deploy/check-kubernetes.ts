import { join } from "node:path";
import ts from "typescript";

/** Modules of `kubernetes-types` that describe each kind, made from Kubernetes' OpenAPI. */
const modules: Record<string, string> = { "apps/v1": "apps/v1", "policy/v1": "policy/v1", v1: "core/v1" };

/** All of the language's own types that objects need: reading TypeScript's libraries would take a second. */
const basics = `declare global {
  interface Array<T> { length: number; [index: number]: T }
  interface Boolean {} interface CallableFunction {} interface Function {} interface IArguments {}
  interface NewableFunction {} interface Number {} interface Object {} interface RegExp {} interface String {}
}`;

/**
 * Checks objects against the types of Kubernetes: kinds, existing and required keys, types of values.
 * @returns the mistakes, one a line.
 */
export function checkKubernetes(objects: readonly { apiVersion: string; kind: string }[]): string[] {
  const file = join(import.meta.dirname, "checked-objects.ts");
  const lines = objects.map(({ apiVersion, kind, ...rest }, index) => {
    const type = `import("kubernetes-types/${modules[apiVersion] ?? apiVersion}").${kind}`;
    return `export const object${index}: ${type} = ${JSON.stringify({ apiVersion, kind, ...rest })};`;
  });
  const options: ts.CompilerOptions = {
    strict: true,
    noEmit: true,
    types: [],
    noLib: true,
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
  };
  const host = ts.createCompilerHost(options);
  const { getSourceFile, fileExists } = host;
  host.fileExists = (name) => name === file || fileExists(name);
  host.getSourceFile = (name, ...rest) =>
    name === file
      ? ts.createSourceFile(name, [basics, ...lines].join("\n"), ts.ScriptTarget.ES2020)
      : getSourceFile(name, ...rest);
  const program = ts.createProgram([file], options, host);
  const source = program.getSourceFile(file);
  return [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)].map(
    ({ messageText }) => ts.flattenDiagnosticMessageText(messageText, " "),
  );
}
