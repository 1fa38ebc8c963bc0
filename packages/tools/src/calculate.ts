/**
 * Evaluates + - * / with parentheses, decimals and unary signs. Recursive descent, linear in the text.
 * @returns the value, or null when the text is not such an expression, or divides by zero.
 */
export function calculate(expression: string): number | null {
  let at = 0;
  let depth = 0;
  const skip = () => {
    while (expression[at] === " ") at++;
  };
  const take = (symbols: string): string | null => {
    skip();
    const symbol = expression[at];
    if (symbol === undefined || !symbols.includes(symbol)) return null;
    at++;
    return symbol;
  };
  const readNumber = (): number | null => {
    skip();
    const match = /^(\d+\.?\d*|\.\d+)/.exec(expression.slice(at, at + 40));
    if (!match) return null;
    at += match[0].length;
    return Number(match[0]);
  };
  const readFactor = (): number | null => {
    const sign = take("+-");
    if (sign) {
      if (++depth > 100) return null;
      const value = readFactor();
      depth--;
      return value === null ? null : sign === "-" ? -value : value;
    }
    if (!take("(")) return readNumber();
    if (++depth > 100) return null;
    const value = readSum();
    depth--;
    return value !== null && take(")") ? value : null;
  };
  const readProduct = (): number | null => {
    let value = readFactor();
    for (let op = take("*/"); value !== null && op; op = take("*/")) {
      const factor = readFactor();
      value = factor === null ? null : op === "*" ? value * factor : value / factor;
    }
    return value;
  };
  const readSum = (): number | null => {
    let value = readProduct();
    for (let op = take("+-"); value !== null && op; op = take("+-")) {
      const term = readProduct();
      value = term === null ? null : op === "+" ? value + term : value - term;
    }
    return value;
  };
  if (expression.length > 200) return null;
  const value = readSum();
  skip();
  return value !== null && at === expression.length && Number.isFinite(value) ? value : null;
}

/** Whole numbers unchanged, others rounded to two decimals. */
export function formatNumber(value: number): string {
  const rounded = Math.round(value);
  return String(Math.abs(value - rounded) < 1e-9 ? rounded + 0 : Math.round(value * 100) / 100);
}
