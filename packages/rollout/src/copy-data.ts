/**
 * Deep copy of plain data: objects, arrays, maps, sets, dates and bytes, with their shared references. Functions and
 * instances of other classes are not data: copy and original share them.
 */
export function copyData<T>(value: T): T {
  return copy(value, new Map()) as T;
}

/** Deep-freezes plain objects and arrays: writing to them throws. */
export function freezeData<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  if (!Array.isArray(value) && !isPlainObject(value)) return value;
  Object.freeze(value);
  for (const entry of Object.values(value)) freezeData(entry);
  return value;
}

/** @param known copies made so far: one value may occur in several places, or inside itself. */
function copy(value: unknown, known: Map<unknown, unknown>): unknown {
  if (typeof value !== "object" || value === null) return value;
  const before = known.get(value);
  if (before !== undefined) return before;
  const keep = <C>(result: C): C => {
    known.set(value, result);
    return result;
  };
  if (Array.isArray(value)) {
    const result: unknown[] = keep([]);
    for (const entry of value) result.push(copy(entry, known));
    return result;
  }
  if (value instanceof Map) {
    const result = keep(new Map());
    for (const [key, entry] of value) result.set(copy(key, known), copy(entry, known));
    return result;
  }
  if (value instanceof Set) {
    const result = keep(new Set());
    for (const entry of value) result.add(copy(entry, known));
    return result;
  }
  if (Buffer.isBuffer(value)) return keep(Buffer.from(value));
  if (value instanceof Date || value instanceof ArrayBuffer || ArrayBuffer.isView(value))
    return keep(structuredClone(value));
  if (!isPlainObject(value)) return value;
  const result: object = keep(Object.create(Object.getPrototypeOf(value)));
  for (const [key, entry] of Object.entries(value)) {
    // Not an assignment: a key may be called `__proto__`.
    Object.defineProperty(result, key, {
      value: copy(entry, known),
      writable: true,
      enumerable: true,
      configurable: true,
    });
  }
  return result;
}

function isPlainObject(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}
