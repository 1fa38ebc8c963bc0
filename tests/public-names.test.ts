import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import ts from "typescript";
import { describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "..");

/** Packages whose index has what users' programs need; the other packages of Cria take the rest from `./internal`. */
const packages = [
  ...["core", "tokenizer-delta", "hub", "engine", "tools", "algorithms", "serve", "trainer", "cluster"],
  ...["rollout", "episodes", "records", "ai-sdk"],
];

/** Public names that no page and no program shows, and why they are public. */
const explained: Record<string, string> = {
  HubError: "errors of calls that are public",
  ToolAgentLoop: "a class of a config's agent loops extends it",
  ToolError: "errors of calls that are public",
  registerRewardManager: "the error of an unknown manager names it",
  defineToolFormat: "makes a ToolFormat, which a task and a config take",
};

const isTest = (file: string) => /\.test\.ts$/.test(file);
const listFiles = (folder: string, pattern: RegExp): string[] =>
  readdirSync(join(root, folder), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && pattern.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => !/\/(node_modules|dist|build|runs)\//.test(file));

const parsed = new Map<string, ts.SourceFile>();
function parse(file: string): ts.SourceFile {
  const known = parsed.get(file);
  if (known) return known;
  const made = ts.createSourceFile(file, readFileSync(file, "utf8"), ts.ScriptTarget.ESNext);
  parsed.set(file, made);
  return made;
}

/** Words in the code of pages: blocks and `names`. */
function readPages(): Set<string> {
  const readmes = ["packages", "apps"].flatMap((parent) =>
    readdirSync(join(root, parent)).map((name) => join(root, parent, name, "README.md")),
  );
  const pages = [join(root, "README.md"), ...readmes, ...listFiles("docs", /\.md$/), ...listFiles("examples", /\.md$/)];
  const texts = pages.filter((file) => existsSync(file)).map((file) => readFileSync(file, "utf8"));
  const code = texts.flatMap((text) => text.match(/```[\s\S]*?```|`[^`\n]+`/g) ?? []);
  return new Set(code.flatMap((text) => text.match(/[A-Za-z_$][\w$]*/g) ?? []));
}

/** Lists the names that programs of this repository import or export again, as users' would. */
function readPrograms(): Set<string> {
  const folders = ["examples", "models", "benchmarks", "deploy", "apps/trainer/src/subpaths"];
  const files = folders.flatMap((folder) => listFiles(folder, /\.m?[jt]s$/)).filter((file) => !isTest(file));
  files.push(join(root, "apps", "trainer", "src", "index.ts"));
  return new Set(files.flatMap((file) => listNamed(file).map(({ name }) => name)));
}

interface Named {
  /** The name in the module that it is taken from. */
  name: string;
  /** The name that it has here. */
  as: string;
  from: string;
}

/** Names that a file imports, or exports from elsewhere. */
function listNamed(file: string): Named[] {
  return parse(file).statements.flatMap((statement) => {
    const isImport = ts.isImportDeclaration(statement);
    if (!isImport && !ts.isExportDeclaration(statement)) return [];
    const names = isImport ? statement.importClause?.namedBindings : statement.exportClause;
    if (!names || !("elements" in names) || !statement.moduleSpecifier) return [];
    const from = (statement.moduleSpecifier as ts.StringLiteral).text;
    return names.elements.map(({ name, propertyName }) => ({ name: (propertyName ?? name).text, as: name.text, from }));
  });
}

interface Place {
  file: string;
  name: string;
}

const resolveSource = (file: string, from: string) =>
  from.startsWith(".") ? resolve(dirname(file), from).replace(/\.js$/, ".ts") : resolvePackage(from);

function resolvePackage(from: string): string | null {
  const [, name, part = "index"] = /^@cria\/([^/]+)(?:\/(\w+))?$/.exec(from) ?? [];
  const file = join(root, "packages", String(name), "src", `${part}.ts`);
  return name && existsSync(file) ? file : null;
}

/** The file that declares a name which another gives; null for names of other people's packages. */
function findPlace(file: string, name: string): Place | null {
  if (declares(file, name)) return { file, name };
  const named = listNamed(file).find(({ as }) => as === name);
  const target = named && resolveSource(file, named.from);
  if (target) return findPlace(target, named.name);
  for (const target of listStars(file)) {
    const found = findPlace(target, name);
    if (found) return found;
  }
  return null;
}

const listStars = (file: string) =>
  parse(file).statements.flatMap((statement) =>
    ts.isExportDeclaration(statement) && !statement.exportClause
      ? (resolveSource(file, (statement.moduleSpecifier as ts.StringLiteral).text) ?? [])
      : [],
  );

const findDeclarations = (file: string, name: string) =>
  parse(file).statements.filter((statement) =>
    ts.isVariableStatement(statement)
      ? statement.declarationList.declarations.some((each) => (each.name as ts.Identifier).text === name)
      : (statement as { name?: ts.Identifier }).name?.text === name,
  );
const declares = (file: string, name: string) => findDeclarations(file, name).length > 0;

/** All names of an index, and of the indexes that it names as a whole. */
const listPublic = (index: string): string[] => [
  ...listNamed(index).map(({ as }) => as),
  ...listStars(index).flatMap(listPublic),
];

/** Types that stand in the signature of what a node declares: bodies and private members are left out. */
function listTypes(node: ts.Node): string[] {
  // A constructor's private parameters are given from outside.
  const modifiers = ts.canHaveModifiers(node) && !ts.isParameter(node) ? node.modifiers : undefined;
  const isPrivate = modifiers?.some(({ kind }) => kind === ts.SyntaxKind.PrivateKeyword);
  if (isPrivate || ts.isBlock(node)) return [];
  if (ts.isIdentifier(node)) return [node.text];
  // A value's declaration shows its type alone; a function's is in its parameters.
  if (ts.isVariableDeclaration(node) || ts.isPropertyDeclaration(node) || ts.isParameter(node)) {
    const { type, initializer } = node;
    const shown = type ?? (initializer && ts.isArrowFunction(initializer) ? initializer : undefined);
    return shown ? listTypes(shown) : [];
  }
  const types: string[] = [];
  node.forEachChild((child) => {
    if (!ts.isArrowFunction(node) || child !== node.body) types.push(...listTypes(child));
  });
  return types;
}

/** The names with those of all types that one needs to write down what they take and give. */
function addTypes(names: readonly Place[]): Set<string> {
  const found = new Set<string>();
  const todo = [...names];
  for (let place = todo.pop(); place; place = todo.pop()) {
    const { file, name } = place;
    if (found.has(`${file}#${name}`)) continue;
    found.add(`${file}#${name}`);
    for (const type of findDeclarations(file, name).flatMap(listTypes)) {
      const there = findPlace(file, type);
      if (there) todo.push(there);
    }
  }
  return found;
}

describe("public names", () => {
  const shown = readPages();
  for (const name of readPrograms()) shown.add(name);
  const index = (name: string) => join(root, "packages", name, "src", "index.ts");
  const places = packages.flatMap((name) =>
    listPublic(index(name)).map((as) => ({ as, place: findPlace(index(name), as), index: index(name) })),
  );
  const isShown = ({ as }: { as: string }) => shown.has(as) || as in explained;
  const needed = addTypes(places.filter(isShown).flatMap(({ place }) => place ?? []));
  // A name without a place is another package's.
  const list = places.filter(
    (each) => !isShown(each) && each.place && !needed.has(`${each.place.file}#${each.place.name}`),
  );

  it("stand in a page or a program, or in the signature of one that does", () => {
    expect(places.length).toBeGreaterThan(300);
    expect(list.map(({ as, index }) => `${relative(root, index)}: ${as}`)).toEqual([]);
  });

  it("are explained only where nothing shows them", () => {
    const names = places.map(({ as }) => as);
    expect(Object.keys(explained).filter((name) => shown.has(name) || !names.includes(name))).toEqual([]);
  });
});
