import type { Value } from "./jinja-library.js";

/**
 * Python's `str()` of a value, which the filter `string` is: None, True, `['a', 1]`. Null for values that no JSON has.
 * (The library writes JSON, and fails for none.)
 */
export function pythonText(value: Value): string | null {
  return value.type === "StringValue" ? (value.value as string) : represent(value);
}

/** Python's `repr()`. */
function represent({ type, value }: Value): string | null {
  switch (type) {
    case "StringValue":
      return quote(value as string);
    case "IntegerValue":
      return String(value);
    case "FloatValue":
      return writeFloat(value as number);
    case "BooleanValue":
      return value ? "True" : "False";
    case "NullValue":
      return "None";
    case "ArrayValue":
      return wrap("[", (value as Value[]).map(represent), "]");
    case "ObjectValue": {
      const entries = [...(value as Map<string, Value>)].map(([key, entry]) => {
        const text = represent(entry);
        return text === null ? null : `${quote(key)}: ${text}`;
      });
      return wrap("{", entries, "}");
    }
    default:
      return null;
  }
}

function wrap(open: string, parts: readonly (string | null)[], close: string): string | null {
  return parts.includes(null) ? null : open + parts.join(", ") + close;
}

const named: Record<string, string> = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" };

function quote(text: string): string {
  const mark = text.includes("'") && !text.includes('"') ? '"' : "'";
  const escaped = text.replace(/[\\'\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu, (char) => {
    if (char === "'") return mark === "'" ? "\\'" : char;
    const code = char.codePointAt(0)!;
    const hex = (width: number) => code.toString(16).padStart(width, "0");
    return named[char] ?? (code < 0x100 ? `\\x${hex(2)}` : code < 0x10000 ? `\\u${hex(4)}` : `\\U${hex(8)}`);
  });
  return mark + escaped + mark;
}

/** As short as it can be read back, with an exponent below 1e-4 and from 1e16 on. */
function writeFloat(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value < 0 ? "-inf" : "inf";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e16)) return value.toExponential().replace(/e([+-])(\d)$/, "e$10$2");
  return Number.isInteger(value) ? `${Object.is(value, -0) ? "-0" : value}.0` : String(value);
}
