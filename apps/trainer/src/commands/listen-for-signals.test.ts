import { afterEach, describe, expect, it, vi } from "vitest";
import { type Interrupted, type ListenOptions, listenForSignals } from "./listen-for-signals.js";

afterEach(() => vi.restoreAllMocks());

function listen(options?: ListenOptions) {
  vi.spyOn(process.stderr, "write").mockReturnValue(true);
  const kill = vi.spyOn(process, "kill").mockReturnValue(true);
  let now = 0;
  vi.spyOn(performance, "now").mockImplementation(() => now);
  return {
    ...listenForSignals(options),
    kill,
    wait: (ms: number) => {
      now += ms;
    },
  };
}

describe("signals", () => {
  for (const [name, code] of [
    ["SIGHUP", 129],
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const) {
    it(`${name} aborts, for exit code ${code}`, () => {
      const { signal, stop } = listen();
      process.emit(name);
      stop();
      expect((signal.reason as Interrupted).exitCode).toBe(code);
    });
  }

  it("a second signal ends the process at once, as it would without a listener", () => {
    const { kill, stop, wait } = listen();
    process.emit("SIGINT");
    wait(1000);
    process.emit("SIGTERM");
    expect(kill).toHaveBeenCalledWith(process.pid, "SIGTERM");
    expect(process.listenerCount("SIGTERM")).toBe(0);
    stop();
  });

  it("while work drains the second signal aborts again, and a third ends the process", () => {
    const { signal, again, kill, stop, wait } = listen({ drains: true });
    process.emit("SIGTERM");
    expect([signal.aborted, again.aborted]).toEqual([true, false]);
    wait(1000);
    process.emit("SIGTERM");
    expect((again.reason as Interrupted).exitCode).toBe(143);
    expect(kill).not.toHaveBeenCalled();
    wait(1000);
    process.emit("SIGTERM");
    expect(kill).toHaveBeenCalledWith(process.pid, "SIGTERM");
    stop();
  });

  it("counts a signal that npm repeats within moments as one", () => {
    const { kill, stop, wait } = listen();
    process.emit("SIGINT");
    wait(100);
    process.emit("SIGINT");
    expect(kill).not.toHaveBeenCalled();
    wait(300);
    process.emit("SIGINT");
    expect(kill).toHaveBeenCalledWith(process.pid, "SIGINT");
    stop();
  });
});
