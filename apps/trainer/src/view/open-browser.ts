import { spawn } from "node:child_process";

const openers: Partial<Record<NodeJS.Platform, [string, string[]]>> = {
  darwin: ["open", []],
  win32: ["cmd", ["/c", "start", '""']],
};

/** Opens an address in the user's browser, if there is one. */
export function openBrowser(url: string): void {
  const [program, args] = openers[process.platform] ?? ["xdg-open", []];
  const child = spawn(program, [...args, url], { stdio: "ignore", detached: true });
  child.on("error", () => undefined);
  child.unref();
}
