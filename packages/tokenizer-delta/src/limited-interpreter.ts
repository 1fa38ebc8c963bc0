import { type Environment, Interpreter, type Node, type Value } from "./jinja-library.js";
import { pythonText } from "./python-text.js";
import type { RenderMeter } from "./render-limits.js";

type FunctionBody = (args: Value[], scope: Environment) => Value;

/** Size of a value when it is written as text. */
interface Weight {
  characters: number;
  /** Number of values in it, including itself. */
  count: number;
  depth: number;
  /** True if it may change later. */
  changes: boolean;
}

/** Filters with arguments whose output can be far larger than their input. */
const growingFilters = ["join", "replace", "indent", "tojson"];
/** Methods of texts whose output can be far larger, or that search. */
const guardedMethods = ["split", "replace"];
/** Methods of lists, which the library lacks. */
const listMethods = ["append", "pop"];
/** A method of texts that the library lacks. */
const FORMAT = "format";
/** Filters that write a text. */
const textFilters = ["string", "upper", "lower", "trim", "capitalize", "title"];
/** Filters that give the keys of a mapping. */
const keyFilters = ["items", "dictsort"];

/**
 * The library's interpreter with a meter: every step of a template goes through `evaluate`, one node at a time. Each
 * step is charged, and each value weighed, so that one node's work is bounded by the work before it. A few nodes have
 * unbounded work (a text put between or in place of many others, a search). These are checked before they run: their
 * operands are evaluated first and inserted as values. `markGuarded` gives those nodes separate types, because this is
 * the hot path.
 */
export class LimitedInterpreter extends Interpreter {
  /** Mappings that have integers as keys, which the library does not know: it holds them as texts. */
  private readonly numbered = new WeakSet<Value>();
  /** Characters of all that was appended to lists. */
  private appended = 0;

  constructor(
    environment: Environment,
    private readonly meter: RenderMeter,
  ) {
    super(environment);
  }

  override evaluate(node: Node | undefined, environment: Environment): Value {
    if (node === undefined) return super.evaluate(node, environment);
    switch (node.type) {
      case "Known":
        return node["value"] as Value;
      case "GuardedSearch":
        return this.admit(super.evaluate(this.guardSearch(node, environment), environment));
      case "GuardedEquality":
        return this.admit(super.evaluate(this.guardEquality(node, environment), environment));
      case "GuardedFilter":
        return this.admit(super.evaluate(this.guardFilter(node, environment), environment));
      case "GuardedMember":
        return this.admit(this.evaluateMember(node, environment));
      case "TextFilter":
        return this.admit(this.writeText(node, environment));
      case "KeyFilter":
        return this.admit(this.listEntries(node, environment));
      case "IterableTest":
        return this.admit(this.testIterable(node, environment));
      case "IntegerKeys":
        return this.admit(this.makeNumbered(node, environment));
      case "Macro":
      case "CallStatement":
        // The library reads the whole body for each macro.
        this.meter.charge(1024);
    }
    return this.admit(super.evaluate(node, environment));
  }

  /** Charges for a node's value, and for the next node's work on it. */
  private admit(value: Value | undefined): Value {
    let characters = 0;
    if (value?.type === "StringValue") {
      characters = (value.value as string).length;
      if (characters > 1024) this.meter.checkSize(characters);
    } else if (value !== undefined && isContainer(value)) {
      characters = this.weigh(value).characters;
    }
    this.meter.charge(1 + (characters >> 10));
    // The first of no items is undefined, for example.
    return value as Value;
  }

  /** `needle in text` */
  private guardSearch(node: Node, environment: Environment): Node {
    const left = this.evaluate(node["left"] as Node, environment);
    const right = this.evaluate(node["right"] as Node, environment);
    if (isText(left) && isText(right)) this.checkSearch(right.value, left.value);
    const search: Node = { type: "BinaryExpression", operator: node["operator"] as Node, left: asNode(left) };
    // Nothing is in an undefined value, and that is in no list; the library refuses to look.
    const isNowhere = left.type === "UndefinedValue" && Array.isArray(right.value);
    if (right.type === "UndefinedValue" || isNowhere)
      return { ...search, left: { type: "IntegerLiteral", value: 0 }, right: { type: "ArrayLiteral", value: [] } };
    if (!isContainer(left) || !Array.isArray(right.value)) return { ...search, right: asNode(right) };
    // Lists and mappings in a list: the library refuses them, too.
    const isIn = (right.value as Value[]).some((entry) => this.areEqual(left, entry));
    const number = (value: number): Node => ({ type: "IntegerLiteral", value });
    return { ...search, left: number(1), right: { type: "ArrayLiteral", value: [number(isIn ? 1 : 0)] } };
  }

  /**
   * `a == b`: lists and mappings are equal if their entries are, as in Jinja; the library compares object identity.
   * Other values keep the library's rule, except that texts only equal texts.
   */
  private guardEquality(node: Node, environment: Environment): Node {
    const left = this.evaluate(node["left"] as Node, environment);
    const right = this.evaluate(node["right"] as Node, environment);
    const equal = this.areEqual(left, right);
    const number = (value: number): Node => ({ type: "IntegerLiteral", value });
    return { type: "BinaryExpression", operator: node["operator"], left: number(1), right: number(equal ? 1 : 0) };
  }

  private areEqual(left: Value, right: Value): boolean {
    if (left.value === right.value) return true;
    if (!isContainer(left) || !isContainer(right)) {
      // biome-ignore lint/suspicious/noDoubleEquals: numbers equal truth values, as in Python.
      return isText(left) === isText(right) && left.value == right.value;
    }
    this.meter.charge(this.weigh(left).count);
    const [a, b] = [left.value, right.value];
    if (a instanceof Map && b instanceof Map) {
      const [entries, others] = [a as Map<string, Value>, b as Map<string, Value>];
      if (entries.size !== others.size) return false;
      return [...entries].every(([key, value]) => others.has(key) && this.areEqual(value, others.get(key)!));
    }
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    return (a as Value[]).every((value, i) => this.areEqual(value, b[i] as Value));
  }

  private guardFilter(node: Node, environment: Environment): Node {
    const filter = node["filter"] as Node;
    const name = (filter["callee"] as Node)["value"] as string;
    const operand = this.evaluate(node["operand"] as Node, environment);
    const { args, values } = this.evaluateArgumentNodes(filter["args"] as Node[], environment);
    this.checkFilter(name, operand, values);
    return { type: "FilterExpression", operand: asNode(operand), filter: { ...filter, args } };
  }

  /** The arguments with values instead of expressions, and these values by name or position. */
  private evaluateArgumentNodes(nodes: readonly Node[], environment: Environment) {
    const values = new Map<string | number, Value>();
    let position = 0;
    const settle = (field: string, node: Node, take: (value: Value) => void): Node => {
      const value = this.evaluate(node[field] as Node, environment);
      take(value);
      return { ...node, [field]: asNode(value) };
    };
    const args = nodes.map((node) => {
      if (node.type === "KeywordArgumentExpression")
        return settle("value", node, (value) => values.set((node["key"] as Node)["value"] as string, value));
      if (node.type === "SpreadExpression" || node.type === "KeywordSpreadExpression")
        return settle("argument", node, ({ value }) => {
          if (Array.isArray(value)) for (const item of value as Value[]) values.set(position++, item);
          if (value instanceof Map) for (const [key, item] of value as Map<string, Value>) values.set(key, item);
        });
      const value = this.evaluate(node, environment);
      values.set(position++, value);
      return asNode(value);
    });
    return { args, values };
  }

  private checkFilter(name: string, operand: Value, values: ReadonlyMap<string | number, Value>): void {
    const { meter } = this;
    const weight = this.weigh(operand);
    const lengthOf = (value: Value | undefined) => (value && isText(value) ? value.value.length : 0);
    const numberOf = (value: Value | undefined) => (typeof value?.value === "number" ? value.value : 0);
    if (name === "replace" && isText(operand)) this.checkReplace(operand.value, [values.get(0), values.get(1)]);
    if (name === "join") {
      const items = isText(operand) ? operand.value.length : weight.count;
      meter.checkSize(items * lengthOf(values.get(0) ?? values.get("separator")));
    }
    if (name === "indent" && isText(operand)) {
      const lines = countOccurrences(operand.value, "\n") + 1;
      meter.checkSize(lines * numberOf(values.get(0) ?? values.get("width")));
    }
    if (name === "tojson") {
      const separators = values.get("separators");
      const between = separators && isContainer(separators) ? this.weigh(separators).characters : 0;
      meter.checkSize(weight.count * (between + weight.depth * numberOf(values.get("indent"))));
    }
  }

  /** `value | string`, and other filters of texts, which take Python's `str()` of other values; undefined is an empty text. */
  private writeText(node: Node, environment: Environment): Value {
    const filter = node["filter"] as Node;
    const operand = this.evaluate(node["operand"] as Node, environment);
    const text = operand.type === "UndefinedValue" ? "" : pythonText(operand);
    const known: Node = text === null ? asNode(operand) : { type: "StringLiteral", value: text };
    return super.evaluate({ type: "FilterExpression", operand: known, filter }, environment);
  }

  /** `value is iterable`, which an undefined value is: an empty one. */
  private testIterable(node: Node, environment: Environment): Value {
    const operand = this.evaluate(node["operand"] as Node, environment);
    const known = operand.type === "UndefinedValue" ? { type: "ArrayLiteral", value: [] } : asNode(operand);
    return super.evaluate({ ...node, type: "TestExpression", operand: known }, environment);
  }

  /** `{0: "a", 512: "b"}` */
  private makeNumbered(node: Node, environment: Environment): Value {
    const entries = [...(node["value"] as Map<Node, Node>)].map(([key, value]) => {
      const name = key.type === "IntegerLiteral" ? { type: "StringLiteral", value: String(key["value"]) } : key;
      return [name, value] as const;
    });
    const mapping = super.evaluate({ type: "ObjectLiteral", value: new Map(entries) }, environment);
    this.numbered.add(mapping);
    return mapping;
  }

  /** `mapping | items` and `mapping | dictsort`, with integers as keys where these were written. */
  private listEntries(node: Node, environment: Environment): Value {
    const operand = this.evaluate(node["operand"] as Node, environment);
    const filter = node["filter"] as Node;
    const known: Node = { type: "FilterExpression", operand: asNode(operand), filter };
    const entries = super.evaluate(known, environment);
    if (!this.numbered.has(operand)) return entries;
    const pairs = (entries.value as Value[]).map(({ value }) => value as [key: Value, value: Value]);
    for (const pair of pairs)
      if (/^-?\d+$/.test(String(pair[0].value)))
        pair[0] = super.evaluate({ type: "IntegerLiteral", value: Number(pair[0].value) }, environment);
    // As texts they are in another order.
    if (filter["value"] === "dictsort")
      (entries.value as Value[]).sort(({ value: a }, { value: b }) => {
        return Number((a as Value[])[0]!.value) - Number((b as Value[])[0]!.value);
      });
    return entries;
  }

  /** `list.append(value)` and `list.pop(index)`. */
  private makeListMethod(list: Weighed & { value: Value[] }, name: string, environment: Environment): Value {
    const body: FunctionBody = (args) => {
      // Lists that contain this one keep their weight, so that all that is appended counts as one text.
      list.weight = undefined;
      if (name === "append") {
        this.appended += this.weigh(args[0]!).characters;
        this.meter.checkSize(this.appended);
        list.value.push(args[0]!);
        return super.evaluate({ type: "Identifier", value: "none" }, environment);
      }
      const index = args.length > 0 ? Number(args[0]!.value) : -1;
      const [taken] = list.value.splice(index < 0 ? index + list.value.length : index, 1);
      if (taken === undefined) throw new Error("pop index out of range");
      return taken;
    };
    const { constructor: FunctionValue } = super.evaluate(METHOD_OF_TEXT, environment);
    return new (FunctionValue as new (body: FunctionBody) => Value)(body);
  }

  /** `text.format(...)`: a text in place of each `{}`. */
  private makeFormat({ value: text }: Value & { value: string }, environment: Environment): Value {
    const body: FunctionBody = (args) => {
      const parts = text.split("{}");
      if (parts.length - 1 !== args.length || !args.every(isText) || /[{}]/.test(parts.join("")))
        throw new Error("format() takes a text for each {}");
      const texts = args.map(({ value }) => value as string);
      this.meter.checkSize(texts.reduce((sum, one) => sum + one.length, text.length));
      const written = parts.map((part, i) => part + (texts[i] ?? "")).join("");
      return super.evaluate({ type: "StringLiteral", value: written }, environment);
    };
    const { constructor: FunctionValue } = super.evaluate(METHOD_OF_TEXT, environment);
    return new (FunctionValue as new (body: FunctionBody) => Value)(body);
  }

  /** `text.split` and `text.replace` check their arguments when they are called. */
  private evaluateMember(node: Node, environment: Environment): Value {
    const object = this.evaluate(node["object"] as Node, environment);
    const property = node["computed"]
      ? this.evaluate(node["property"] as Node, environment)
      : (node["property"] as Node);
    const name = String(property.value);
    if (object.type === "ArrayValue" && property.type !== "IntegerValue" && listMethods.includes(name))
      return this.makeListMethod(object as Value & { value: Value[] }, name, environment);
    if (isText(object) && name === FORMAT) return this.makeFormat(object, environment);
    const isNumbered = property.type === "IntegerValue" && this.numbered.has(object);
    // No entry has such a key; the library refuses to look.
    if (object.type === "ObjectValue" && node["computed"] && !isNumbered && !isText(property as Value))
      return super.evaluate(UNDEFINED, environment);
    const key: Node = isNumbered ? { type: "StringLiteral", value: name } : asNode(property as Value);
    const known = node["computed"] ? key : property;
    const access = { type: "MemberExpression", computed: node["computed"], object: asNode(object), property: known };
    const member = super.evaluate(access, environment);
    if (!isText(object) || member.type !== "FunctionValue" || !guardedMethods.includes(name)) return member;
    const call = member.value as FunctionBody;
    const guarded: FunctionBody = (args, scope) => {
      if (name === "replace") this.checkReplace(object.value, args);
      else if (args[0] && isText(args[0])) this.checkSearch(object.value, args[0].value);
      return call(args, scope);
    };
    return new (member.constructor as new (body: FunctionBody) => Value)(guarded);
  }

  private checkReplace(text: string, [before, after]: readonly (Value | undefined)[]): void {
    if (!before || !after || !isText(before) || !isText(after)) return;
    // The library converts it to a regular expression, which compares character by character at each place.
    this.meter.checkSearch(Math.max(text.length, before.value.length) * before.value.length);
    const most = before.value === "" ? text.length + 1 : text.length / before.value.length;
    if (most * after.value.length < text.length) return;
    this.meter.checkSize(countOccurrences(text, before.value) * after.value.length);
  }

  /** V8 compares the last 250 characters of a long search text before it moves on. */
  private checkSearch(text: string, needle: string): void {
    if (needle.length <= text.length) this.meter.checkSearch((text.length * needle.length) / 250);
  }

  /**
   * Caches the weight of a value, except for a namespace, which changes, and values that contain one: these are weighed
   * each time.
   * @throws TemplateLimitError when it is too much.
   */
  private weigh(value: Weighed): Weight {
    if (value.weight) return value.weight;
    if (!isContainer(value)) {
      const characters = isText(value) ? value.value.length + 2 : 8;
      return { characters, count: 1, depth: 0, changes: false };
    }
    const weight: Weight = { characters: 2, count: 1, depth: 0, changes: value.type === "NamespaceValue" };
    if (value.value instanceof Map) {
      for (const [key, entry] of value.value as Map<string, Weighed>) this.addWeight(weight, entry, key.length + 4);
    } else {
      for (const entry of value.value as Weighed[]) this.addWeight(weight, entry, 2);
    }
    if (!weight.changes) value.weight = weight;
    return weight;
  }

  private addWeight(weight: Weight, entry: Weighed, around: number): void {
    weight.count++;
    weight.characters += around;
    if (isContainer(entry)) {
      const inside = this.weigh(entry);
      weight.characters += inside.characters;
      weight.count += inside.count;
      if (inside.depth >= weight.depth) weight.depth = inside.depth + 1;
      weight.changes ||= inside.changes;
    } else {
      weight.characters += isText(entry) ? entry.value.length + 2 : 8;
    }
    if (weight.characters > 1024) this.meter.checkSize(weight.characters);
  }
}

type Weighed = Value & { weight?: Weight };

/** A variable that no template has. */
const UNDEFINED: Node = { type: "Identifier", value: "cria_undefined_7f3a" };

/** `"".split`: a function, and so its class. */
const METHOD_OF_TEXT: Node = {
  type: "MemberExpression",
  computed: false,
  object: { type: "StringLiteral", value: "" },
  property: { type: "Identifier", value: "split" },
};

/** Gives the nodes of a parsed program that must be checked before they run separate types. */
export function markGuarded(node: Node): void {
  if (node.type === "BinaryExpression" && ["in", "not in"].includes((node["operator"] as Node)["value"] as string))
    node.type = "GuardedSearch";
  if (node.type === "BinaryExpression" && ["==", "!="].includes((node["operator"] as Node)["value"] as string))
    node.type = "GuardedEquality";
  if (node.type === "FilterExpression") {
    const filter = node["filter"] as Node;
    const name = (filter["callee"] as Node | undefined)?.["value"];
    if (filter.type === "CallExpression" && growingFilters.includes(name as string)) node.type = "GuardedFilter";
    if (textFilters.includes(filter["value"] as string)) node.type = "TextFilter";
    if (keyFilters.includes(filter["value"] as string)) node.type = "KeyFilter";
  }
  if (node.type === "TestExpression" && (node["test"] as Node)["value"] === "iterable") node.type = "IterableTest";
  if (node.type === "ObjectLiteral" && [...(node["value"] as Map<Node, Node>).keys()].some(isInteger))
    node.type = "IntegerKeys";
  if (node.type === "MemberExpression" && mayBeGuarded(node)) node.type = "GuardedMember";
  // The target of an assignment is not read.
  const target = node.type === "Set" ? (node["assignee"] as Node) : undefined;
  if (target?.type === "GuardedMember") target.type = "MemberExpression";
}

/** A node that stands for a value. */
function asNode(value: Value): Node {
  return { type: "Known", value };
}

function isText(value: Value): value is Value & { value: string } {
  return value.type === "StringValue";
}

function isContainer(value: Value): boolean {
  return typeof value.value === "object" && value.value !== null;
}

/** True if a member may be one of the guarded methods, as far as the source shows. */
function mayBeGuarded({ computed, property }: Node): boolean {
  const { type, value } = property as Node;
  if (!computed || type === "StringLiteral")
    return [...guardedMethods, ...listMethods, FORMAT].includes(value as string);
  return type !== "SliceExpression";
}

const isInteger = ({ type }: Node) => type === "IntegerLiteral";

function countOccurrences(text: string, part: string): number {
  if (part === "") return text.length + 1;
  let count = 0;
  for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + part.length)) count++;
  return count;
}
