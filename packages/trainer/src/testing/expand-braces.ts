/** Expands braces: "a/{b,c}/d" -> "a/b/d", "a/c/d". */
export function expandBraces(pattern: string): string[] {
  const match = /^(.*?)\{(.*?)\}(.*)$/.exec(pattern);
  return match ? match[2]!.split(",").flatMap((part) => expandBraces(`${match[1]}${part}${match[3]}`)) : [pattern];
}
