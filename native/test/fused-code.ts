// Reads disassembled x86-64 code (objdump, AT&T syntax) to find products that are rounded before an addition, where a
// fused operation rounds once.

export interface CodeReport {
  /** Number of fused operations. */
  fused: number;
  /** "function: instruction" of each addition of a rounded product. */
  additions: string[];
}

interface Instruction {
  address: number;
  mnemonic: string;
  operands: string[];
  text: string;
}

const PRODUCT = /^v?mul[ps][sd]$/;
const ADDITION = /^v?(add|sub)[ps][sd]$/;
const FUSED = /^vfn?m(?:add|sub)(132|213|231)[ps][sd]$/;
const MOVE = /^v?mov(?:[au]p[sd]|dq[au](?:32|64)?|s[sd])$/;
/** Instructions that do not write their last operand. */
const READ_ONLY = /^(v?u?comis[sd]|cmp[bwlq]?|test[bwlq]?|prefetch\w*|push|j\w+|call\w*|nop\w*)$/;
/** Index of the operand that each fused form adds. */
const ADDENDS: Record<string, number> = { "132": 1, "213": 0, "231": 2 };

/**
 * Follows products through registers and the stack along every path of each function, and reports each register or slot
 * that holds a product when it is added, or when it is the addend of a fused operation.
 */
export function findRoundedProducts(disassembly: string): CodeReport {
  const report: CodeReport = { fused: 0, additions: [] };
  for (const { name, code } of readFunctions(disassembly)) {
    report.fused += code.filter(({ mnemonic }) => FUSED.test(mnemonic)).length;
    report.additions.push(...findInFunction(code).map((text) => `${name}: ${text}`));
  }
  return report;
}

function findInFunction(code: readonly Instruction[]): string[] {
  const places = new Map(code.map(({ address }, i) => [address, i]));
  // The places that hold a product before each instruction, on any path to it; undefined: not reached yet.
  const held: (Set<string> | undefined)[] = code.map(() => undefined);
  const found = new Set<string>();
  const queue: number[] = [];
  const reach = (i: number | undefined, state: ReadonlySet<string>) => {
    if (i === undefined || i >= code.length) return;
    const before = held[i];
    if (before && [...state].every((operand) => before.has(operand))) return;
    held[i] = new Set([...(before ?? []), ...state]);
    queue.push(i);
  };
  reach(0, new Set());
  for (let i = queue.pop(); i !== undefined; i = queue.pop()) {
    const { mnemonic, operands, text } = code[i]!;
    const state = new Set(held[i]);
    if (addsHeld(mnemonic, operands, state)) found.add(text);
    const target = operands.at(-1);
    if (target !== undefined && !READ_ONLY.test(mnemonic)) {
      const copies = MOVE.test(mnemonic) && operands.slice(0, -1).some((operand) => state.has(operand));
      // Memory other than the stack is an array: in the next iteration the same address expression means another entry.
      const keeps = target.startsWith("%") || target.includes("(%rsp");
      if ((PRODUCT.test(mnemonic) || copies) && keeps) state.add(target);
      else state.delete(target);
    }
    if (mnemonic.startsWith("j")) reach(places.get(Number.parseInt(operands[0]!, 16)), state);
    if (!/^(jmp|ret)/.test(mnemonic)) reach(i + 1, state);
  }
  return [...found];
}

function addsHeld(mnemonic: string, operands: readonly string[], held: ReadonlySet<string>): boolean {
  const form = FUSED.exec(mnemonic)?.[1];
  if (form) return held.has(operands[ADDENDS[form]!]!);
  // Without VEX the target is also an operand.
  return (
    ADDITION.test(mnemonic) && (mnemonic.startsWith("v") ? operands.slice(0, -1) : operands).some((o) => held.has(o))
  );
}

function readFunctions(disassembly: string): { name: string; code: Instruction[] }[] {
  const functions: { name: string; code: Instruction[] }[] = [];
  for (const line of disassembly.split("\n")) {
    const start = /^[0-9a-f]+ <(.*)>:$/.exec(line);
    if (start) functions.push({ name: start[1]!, code: [] });
    const [, address, mnemonic, rest] = /^\s+([0-9a-f]+):\s+([a-z0-9]+)\s*(.*)$/.exec(line) ?? [];
    if (!address || !mnemonic) continue;
    const text = `${mnemonic} ${rest}`.trim();
    functions
      .at(-1)
      ?.code.push({ address: Number.parseInt(address, 16), mnemonic, operands: splitOperands(rest!), text });
  }
  return functions;
}

/** Operands, with one name for a register of any width. Leaves out masks, comments and names of addresses. */
function splitOperands(text: string): string[] {
  const bare = text
    .replace(/#.*$/, "")
    .replace(/\{[^}]*\}/g, "")
    .replace(/<.*>/, "");
  return (bare.match(/(?:[^,(]|\([^)]*\))+/g) ?? [])
    .map((operand) => operand.trim().replace(/^%[xyz]mm/, "%vector"))
    .filter((operand) => operand !== "");
}
