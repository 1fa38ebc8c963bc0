import { expect, it, vi } from "vitest";
import { connectLocally, LocalHub } from "../local/local-store.js";
import { acquireLease } from "./lease.js";

it("tells a waiting coordinator the request and the answer, once for each, and gives the lease once the bus answers", async () => {
  const store = connectLocally(new LocalHub({ leaseMs: 50 }));
  vi.spyOn(store.control, "get")
    .mockRejectedValueOnce(new Error("stream not found"))
    .mockRejectedValueOnce(new Error("stream not found"))
    .mockRejectedValueOnce(new Error("no responders"));
  vi.spyOn(store.control, "set").mockRejectedValueOnce(new Error("no room"));
  const reasons: string[] = [];
  const lease = await acquireLease(store, "me", new AbortController().signal, (reason) => reasons.push(reason));
  expect(lease.term).toBe(1);
  expect(reasons).toHaveLength(3);
  for (const [i, answer] of ["stream not found", "no responders", "no room"].entries())
    expect(reasons[i]).toContain(answer);
  expect(reasons[2]).not.toBe(reasons[0]);
  await lease.release();
  await store.close();
});
