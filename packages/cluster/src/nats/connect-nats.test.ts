import { type AddressInfo, createServer, type Socket } from "node:net";
import type { PeerCertificate } from "node:tls";
import { expect, it } from "vitest";
import { connectNats, expectServer } from "./connect-nats.js";

const certificateOf = (subjectaltname: string) => ({ subject: { CN: "nats" }, subjectaltname }) as PeerCertificate;

// Node is told "localhost" as the host of a server that is dialled by its address.
it.each([
  ["nats://10.0.0.1:4222", "localhost", "IP Address:10.0.0.1", true],
  ["10.0.0.1:4222", "localhost", "IP Address:10.0.0.2", false],
  ["tls://10.0.0.1:4222", "localhost", "DNS:localhost", false],
  ["tls://[fd00::1]:4222", "localhost", "IP Address:FD00:0:0:0:0:0:0:1", true],
  [["tls://10.0.0.1", "tls://10.0.0.2"], "localhost", "IP Address:10.0.0.2", true],
  [["tls://10.0.0.1", "tls://localhost"], "localhost", "DNS:localhost", true],
  ["tls://localhost:4222", "localhost", "DNS:localhost", true],
  ["tls://nats.example.org:4222", "nats.example.org", "DNS:nats.example.org", true],
  ["tls://nats.example.org:4222", "nats.example.org", "DNS:other.example.org", false],
])("a client that dials %s (as %s) gets a certificate for %s: trusted %s", (servers, dialled, names, trusted) => {
  expect(expectServer(servers)(dialled, certificateOf(names)) === undefined).toBe(trusted);
});

it("a server that does not answer is tried once more", async () => {
  const sockets: Socket[] = [];
  const server = createServer((socket) => sockets.push(socket)).listen(0, "127.0.0.1");
  try {
    await new Promise((resolve) => server.once("listening", resolve));
    const servers = `nats://127.0.0.1:${(server.address() as AddressInfo).port}`;
    await expect(connectNats({ servers, connectMs: 50 }, "worker", "test")).rejects.toMatchObject({
      code: "cluster/unreachable",
      received: "timeout",
    });
    expect(sockets).toHaveLength(2);
  } finally {
    for (const socket of sockets) socket.destroy();
    server.close();
  }
});
