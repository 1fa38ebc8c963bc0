import { execFileSync } from "node:child_process";

const ip = (...words: string[]) => execFileSync("ip", words, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });

/** The reason why this machine or user cannot make network namespaces; undefined: it can. */
export function whyNoNamespaces(): string | undefined {
  const name = `cria-try-${process.pid}`;
  try {
    ip("netns", "add", name);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT"
      ? "ip (iproute2) is not installed"
      : "needs CAP_SYS_ADMIN";
  }
  try {
    ip("-n", name, "link", "add", "bridge0", "type", "bridge");
    ip("-n", name, "link", "add", "here", "type", "veth", "peer", "name", "there");
    return undefined;
  } catch {
    return "the kernel or the user's rights allow no veth or bridge";
  } finally {
    ip("netns", "del", name);
  }
}

/** The reason why packets cannot be dropped or delayed this way; undefined: they can. */
export function whyNot(means: "loss" | "delay"): string | undefined {
  const network = new Network();
  try {
    network.add("host");
    if (means === "loss") network.lose("host", 20);
    else network.delay("host", 200);
    return undefined;
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === "ENOENT";
    if (means === "loss")
      return missing ? "nft (nftables) is not installed" : "the kernel has no random nftables rules";
    return missing ? "tc (iproute2) is not installed" : "the kernel has no netem (sch_netem)";
  } finally {
    network.dispose();
  }
}

let networks = 0;

/** Hosts in separate network namespaces, on one switch, which is a bridge in another namespace. */
export class Network {
  readonly #prefix = `cria-${process.pid}-${++networks}`;
  readonly #switch = `${this.#prefix}-switch`;
  readonly #hosts: string[] = [];

  constructor() {
    ip("netns", "add", this.#switch);
    ip("-n", this.#switch, "link", "add", "switch", "type", "bridge");
    ip("-n", this.#switch, "link", "set", "switch", "up");
  }

  /** Adds a host with a line to the switch. @returns its address. */
  add(host: string): string {
    const namespace = this.#nameOf(host);
    const address = `10.201.0.${this.#hosts.push(host)}`;
    ip("netns", "add", namespace);
    ip("-n", this.#switch, "link", "add", host, "type", "veth", "peer", "name", "eth0", "netns", namespace);
    ip("-n", this.#switch, "link", "set", host, "master", "switch", "up");
    ip("-n", namespace, "address", "add", `${address}/24`, "dev", "eth0");
    ip("-n", namespace, "link", "set", "eth0", "up");
    ip("-n", namespace, "link", "set", "lo", "up");
    return address;
  }

  #nameOf(host: string): string {
    return `${this.#prefix}-${host}`;
  }

  /** The words that run a program on a host. */
  on(host: string): string[] {
    return ["ip", "netns", "exec", this.#nameOf(host)];
  }

  /** Disconnects a host: its packets vanish without an error. */
  cut(host: string): void {
    ip("-n", this.#switch, "link", "set", host, "down");
  }

  mend(host: string): void {
    ip("-n", this.#switch, "link", "set", host, "up");
  }

  /** Drops this percentage of the packets to and from a host. */
  lose(host: string, percent: number): void {
    const drop = `numgen random mod 100 < ${percent} drop`;
    const rules = [
      `table bridge loss_${host} {`,
      "chain both {",
      "type filter hook forward priority 0",
      `iifname "${host}" ${drop}`,
      `oifname "${host}" ${drop}`,
      "}",
      "}",
    ].join("\n");
    execFileSync("ip", ["netns", "exec", this.#switch, "nft", "-f", "-"], {
      input: rules,
      stdio: ["pipe", "ignore", "pipe"],
    });
  }

  /** Delays each packet to a host, and each from it, by these milliseconds. */
  delay(host: string, milliseconds: number): void {
    const netem = ["root", "netem", "delay", `${milliseconds}ms`];
    for (const [namespace, device] of [
      [this.#switch, host],
      [this.#nameOf(host), "eth0"],
    ] as const)
      execFileSync("tc", ["-n", namespace, "qdisc", "add", "dev", device, ...netem], {
        stdio: ["ignore", "ignore", "pipe"],
      });
  }

  dispose(): void {
    for (const name of [...this.#hosts.map((host) => this.#nameOf(host)), this.#switch]) {
      try {
        ip("netns", "del", name);
      } catch {}
    }
  }
}
