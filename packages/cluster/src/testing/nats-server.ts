import { execFileSync } from "node:child_process";
import { describe, it } from "vitest";

export { NatsServer, smallBounds } from "./nats-process.js";

function isInstalled(): boolean {
  try {
    execFileSync("nats-server", ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** Tests with Debian's nats-server: skipped with a message where it is missing; in CI they fail. */
export function describeWithNats(title: string, body: () => void): void {
  if (process.env.CI || isInstalled()) describe(title, body);
  else it.skip(`${title}: nats-server is not installed, see scripts/install-test-tools.sh`, () => {});
}
