// Reads the log files of AddressSanitizer, UndefinedBehaviorSanitizer and LeakSanitizer.
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";

const LEAKS = "ERROR: LeakSanitizer: detected memory leaks";
const FRAME = /^\s*(#\d+) 0x[0-9a-f]+ .*?\((\/[^()]+)\+(0x[0-9a-f]+)\)/;
const ALLOCATORS = /^lib(asan|stdc\+\+|c|gcc_s)\.so/;
/** Printed when an exception is thrown on a stack with unknown bounds; it only keeps more of that stack poisoned. */
const NOTICE = /^==\d+==WARNING: ASan is ignoring requested __asan_handle_no_return.*\n.*\nFor details see .*\n?/gm;
const OURS = /^(cria\.node|libllama|libggml)/;

/**
 * The findings in `folder` (sanitizers' `log_path`), each one text, its frames with function and line.
 *
 * Leaks only count if the addon or llama.cpp allocated them: the first module on the stack behind the allocator and the
 * C and C++ libraries. Node and V8 keep thousands of objects that LeakSanitizer cannot find, for V8's heap lies in
 * memory that it does not search, and free none of them at exit; their stacks pass through the addon too, where it
 * creates JavaScript values. A suppression file matches any frame, so `leak:node` would hide everything that the addon
 * allocates when JavaScript calls it.
 */
export function readReports(folder) {
  const findings = [];
  let foreignLeaks = 0;
  for (const file of readdirSync(folder).sort()) {
    const text = readFileSync(join(folder, file), "utf8").replace(NOTICE, "");
    if (text.trim() === "") continue;
    if (!text.includes(LEAKS)) {
      findings.push(text);
      continue;
    }
    // The text before the list of leaks is another report of the same process, or only a separator.
    const [before, ...leaks] = text.split(/^(?=(?:Direct|Indirect) leak of)/m);
    const other = before.split(LEAKS)[0].replace(/==\d+==$/, "");
    if (/[a-z]/i.test(other)) findings.push(other);
    for (const leak of leaks) {
      if (OURS.test(findAllocator(leak))) findings.push(leak);
      else foreignLeaks++;
    }
  }
  return { findings: [...new Set(findings.map((text) => symbolize(text).trim()))], foreignLeaks };
}

function findAllocator(leak) {
  for (const line of leak.split("\n")) {
    const module = FRAME.exec(line)?.[2];
    if (module && !ALLOCATORS.test(basename(module))) return basename(module);
  }
  return "";
}

/**
 * Sanitizers look symbols up slowly (seconds for each process that ends with Node's leaks), so only findings get them.
 */
function symbolize(text) {
  return text
    .split("\n")
    .map((line) => {
      const [, number, module, offset] = FRAME.exec(line) ?? [];
      if (!module || !existsSync(module)) return line;
      const where = execFileSync("addr2line", ["-Cfpe", module, offset], { encoding: "utf8" }).trim();
      return where.startsWith("??") ? line : `    ${number} ${where}`;
    })
    .join("\n");
}
