/**
 * Evaluates whole numbers, names, + - * / % and parentheses, as in `$((a * (b + 1)))`.
 * @returns null for anything else, or for a name whose value is no whole number.
 */
export function evaluateArithmetic(text: string, lookUp: (name: string) => string): number | null {
  const tokens = text.match(/\d+|\$?\{?[A-Za-z_]\w*\}?|[-+*/%()]|\S/g) ?? [];
  let at = 0;
  const readFactor = (): number => {
    const token = tokens[at++] ?? "";
    if (token === "-") return -readFactor();
    if (token === "+") return readFactor();
    if (token === "(") {
      const value = readSum();
      return tokens[at++] === ")" ? value : Number.NaN;
    }
    if (/^\d+$/.test(token)) return Number(token);
    const name = /^\$?\{?([A-Za-z_]\w*)\}?$/.exec(token)?.[1];
    const value = name === undefined ? "" : lookUp(name).trim();
    return /^-?\d+$/.test(value) ? Number(value) : Number.NaN;
  };
  const readProduct = (): number => {
    let value = readFactor();
    while (/^[*/%]$/.test(tokens[at] ?? "")) {
      const operator = tokens[at++];
      const right = readFactor();
      value = operator === "*" ? value * right : operator === "/" ? Math.trunc(value / right) : value % right;
    }
    return value;
  };
  const readSum = (): number => {
    let value = readProduct();
    while (/^[-+]$/.test(tokens[at] ?? ""))
      value = tokens[at++] === "+" ? value + readProduct() : value - readProduct();
    return value;
  };
  const value = readSum();
  return at === tokens.length && Number.isSafeInteger(value) ? value : null;
}
