// Programs of npm and of packages, as Node starts them on each system: on Windows they are .cmd files, which only a shell
// starts, so Node runs the scripts behind them.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** `[command, ...arguments]` of npm or npx. */
export function npmProgram(name, ...args) {
  if (process.platform !== "win32") return [name, ...args];
  return [process.execPath, join(dirname(process.execPath), "node_modules", "npm", "bin", `${name}-cli.js`), ...args];
}

/** `[command, ...arguments]` of a program that a package installed in `folder` has. @throws Error without the package. */
export function packageProgram(folder, packageName, program = packageName) {
  const root = join(folder, "node_modules", packageName);
  if (!existsSync(root)) throw new Error(`${packageName} is not installed in ${folder}; run: npm run bootstrap`);
  const { bin } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  return [process.execPath, join(root, typeof bin === "string" ? bin : bin[program])];
}
