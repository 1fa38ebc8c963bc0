import ts from "typescript";

/** Matchers of a whole error by its message, and matchers of a text. */
const ofErrors = ["toThrow", "toThrowError"];
const ofTexts = ["toBe", "toEqual", "toStrictEqual", "toMatch", "toContain"];
/** Fields of errors that are sentences. The others hold values: `code`, `subject`, `expected`, `received`. */
const sentences = ["message", "summary"];

/** Two words of a sentence side by side, as "is missing"; names, numbers, paths and single words are values. */
const phrase = /(?<![\w./#"'`-])[a-z]{2,} [a-z]{2,}(?![\w./#"'`(=-])/;

/**
 * Lists the assertions of a test's source, as `<line>: <text>`, that look for words of an error: in the argument of
 * `toThrow`, in the matcher of a `message`, `summary` or `String(error)`, and in a `message` or `summary` of an
 * expected object. Variables are followed to their constants, tables of `it.each` and callers. Texts that the source
 * itself gives to errors (`new Error("...")`, `summary: "..."`) are values.
 */
export function findErrorWords(source: string, name = "source.test.ts"): string[] {
  const kind = name.endsWith("x") ? ts.ScriptKind.TSX : ts.ScriptKind.TS;
  const file = ts.createSourceFile(name, source, ts.ScriptTarget.Latest, true, kind);
  const own = [...source.matchAll(/Error\(\s*(["'`])(.*?)\1/g)].map(([, , text]) => text!);
  visit(file, (node) => {
    if (isSentenceField(node) && !isExpected(node) && ts.isStringLiteralLike(node.initializer))
      own.push(node.initializer.text);
  });
  const found: string[] = [];
  visit(file, (node) => {
    for (const looked of listLookedFor(node))
      for (const text of listTexts(looked))
        if (phrase.test(withoutSyntax(text)) && !own.some((made) => text.test(made)))
          found.push(`${file.getLineAndCharacterOfPosition(looked.getStart()).line + 1}: ${text.source}`);
  });
  return [...new Set(found)];
}

/** The expressions that this node compares with an error. */
function listLookedFor(node: ts.Node): ts.Expression[] {
  if (isSentenceField(node)) return isExpected(node) ? [node.initializer] : [];
  if (!ts.isCallExpression(node) || !ts.isPropertyAccessExpression(node.expression)) return [];
  const { expression: of, name } = node.expression;
  const [given] = node.arguments;
  if (!given || (ts.isPropertyAccessExpression(of) && of.name.text === "not")) return [];
  if (ofErrors.includes(name.text)) return [given];
  return ofTexts.includes(name.text) && isSentence(findSubject(of)) ? [given] : [];
}

/** The argument of `expect`, also behind `.resolves` and `.rejects`. */
function findSubject(node: ts.Expression): ts.Expression | undefined {
  if (ts.isPropertyAccessExpression(node)) return findSubject(node.expression);
  return ts.isCallExpression(node) && node.expression.getText() === "expect" ? node.arguments[0] : undefined;
}

function isSentence(node: ts.Expression | undefined): boolean {
  if (node === undefined) return false;
  if (ts.isIdentifier(node)) return sentences.includes(node.text);
  if (ts.isPropertyAccessExpression(node)) return sentences.includes(node.name.text);
  if (ts.isNonNullExpression(node) || ts.isParenthesizedExpression(node)) return isSentence(node.expression);
  return ts.isCallExpression(node) && /^String\((await )?\w*([eE]rror|failure|failureOf)\b/.test(node.getText());
}

const isSentenceField = (node: ts.Node): node is ts.PropertyAssignment =>
  ts.isPropertyAssignment(node) && sentences.includes(node.name.getText());

/** True for a property of an object with which a matcher compares. */
function isExpected(node: ts.Node): boolean {
  for (let at = node.parent; at; at = at.parent) {
    if (ts.isCallExpression(at)) return /\b(to[A-Z]\w*|objectContaining)$/.test(at.expression.getText());
    if (!ts.isObjectLiteralExpression(at) && !ts.isPropertyAssignment(at) && !ts.isArrayLiteralExpression(at))
      return false;
  }
  return false;
}

/** The texts and patterns that an expression may be. */
function listTexts(node: ts.Expression | undefined): RegExp[] {
  if (node === undefined) return [];
  if (ts.isStringLiteralLike(node)) return [toPattern(node.text)];
  if (ts.isTemplateExpression(node)) {
    const parts = [node.head.text, ...node.templateSpans.map(({ literal }) => literal.text)];
    return [new RegExp(parts.map(quote).join("[\\s\\S]*"))];
  }
  if (ts.isRegularExpressionLiteral(node)) return [readPattern(node.text)];
  if (ts.isConditionalExpression(node)) return [node.whenTrue, node.whenFalse].flatMap(listTexts);
  if (ts.isAsExpression(node) || ts.isParenthesizedExpression(node) || ts.isNonNullExpression(node))
    return listTexts(node.expression);
  if (ts.isNewExpression(node) && node.expression.getText() === "RegExp") return listTexts(node.arguments?.[0]);
  if (ts.isCallExpression(node) && /^expect\.string(Containing|Matching)$/.test(node.expression.getText()))
    return listTexts(node.arguments[0]);
  return ts.isIdentifier(node) ? listValues(node).flatMap(listTexts) : [];
}

const quote = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
const toPattern = (text: string) => new RegExp(quote(text));

function readPattern(literal: string): RegExp {
  const end = literal.lastIndexOf("/");
  return new RegExp(literal.slice(1, end), literal.slice(end + 1).replace("g", ""));
}

/** A pattern as a reader sees its words: what stands for any text separates them. */
const withoutSyntax = ({ source }: RegExp): string =>
  source
    .replace(/\[\\s\\S\][*+?]?|\.[*+]\??|\\[a-zA-Z][*+?]?|\[[^\]]*\][*+?]?|\{\d+\}/g, "~")
    .replace(/[()|^$]/g, "~")
    .replace(/\\(.)/g, "$1");

/** The values of a variable: its constant, its column of a table, or the arguments of its function's callers. */
function listValues(name: ts.Identifier): ts.Expression[] {
  for (let scope: ts.Node | undefined = name.parent; scope; scope = scope.parent) {
    if (ts.isFunctionLike(scope)) {
      const index = scope.parameters.findIndex((parameter) => parameter.name.getText() === name.text);
      if (index >= 0) return listArguments(scope, index);
    }
    if (ts.isForOfStatement(scope) && ts.isVariableDeclarationList(scope.initializer)) {
      const [declaration] = scope.initializer.declarations;
      const key = findKey(declaration!.name, name.text);
      if (key !== undefined) return listRows(scope.expression).flatMap((row) => pick(row, key));
    }
    if (ts.isBlock(scope) || ts.isSourceFile(scope)) {
      for (const statement of scope.statements.filter(ts.isVariableStatement))
        for (const declaration of statement.declarationList.declarations)
          if (declaration.name.getText() === name.text) return declaration.initializer ? [declaration.initializer] : [];
    }
  }
  return [];
}

/** Index or name at which a pattern binds the variable; null: the whole value. */
function findKey(pattern: ts.BindingName, name: string): number | string | null | undefined {
  if (ts.isIdentifier(pattern)) return pattern.text === name ? null : undefined;
  const index = pattern.elements.findIndex((part) => ts.isBindingElement(part) && part.name.getText() === name);
  if (index < 0) return undefined;
  return ts.isArrayBindingPattern(pattern) ? index : name;
}

/** Arguments of callers for this parameter: rows of `it.each(rows)(title, work)`, or calls of the constant function. */
function listArguments(work: ts.SignatureDeclaration, index: number): ts.Expression[] {
  const { parent } = work;
  if (ts.isCallExpression(parent) && ts.isCallExpression(parent.expression)) {
    const each = parent.expression;
    if (!/\.each$/.test(each.expression.getText())) return [];
    return listRows(each.arguments[0]).flatMap((row) => (ts.isArrayLiteralExpression(row) ? pick(row, index) : [row]));
  }
  const named = ts.isVariableDeclaration(parent) ? parent.name.getText() : work.name?.getText();
  const calls: ts.Expression[] = [];
  visit(work.getSourceFile(), (node) => {
    if (ts.isCallExpression(node) && node.expression.getText() === named && node.arguments[index])
      calls.push(node.arguments[index]);
  });
  return calls;
}

/** The rows of a table that stands in the source. */
function listRows(node: ts.Expression | undefined): ts.Expression[] {
  if (node === undefined) return [];
  if (ts.isAsExpression(node) || ts.isParenthesizedExpression(node)) return listRows(node.expression);
  if (ts.isArrayLiteralExpression(node)) return [...node.elements];
  return ts.isIdentifier(node) ? listValues(node).flatMap(listRows) : [];
}

function pick(row: ts.Expression, key: number | string | null): ts.Expression[] {
  if (key === null) return [row];
  if (ts.isAsExpression(row)) return pick(row.expression, key);
  if (typeof key === "number") return ts.isArrayLiteralExpression(row) && row.elements[key] ? [row.elements[key]] : [];
  if (!ts.isObjectLiteralExpression(row)) return [];
  return row.properties.flatMap((part) =>
    ts.isPropertyAssignment(part) && part.name.getText() === key ? [part.initializer] : [],
  );
}

function visit(node: ts.Node, see: (node: ts.Node) => void): void {
  see(node);
  ts.forEachChild(node, (child) => visit(child, see));
}
