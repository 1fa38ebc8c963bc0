import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";

/** One call of a method, and its outcome. */
export interface CallRecord {
  method: string;
  /** pending: it was still running when the check stopped waiting. */
  outcome: { kind: "pending" } | { kind: "returned"; value: unknown } | { kind: "threw"; error: unknown };
  /** Milliseconds that it blocked the event loop until it first yielded, without the time taken by other processes. */
  blockedMs: number;
  /** True if it changed its arguments. */
  changedArguments: boolean;
}

/**
 * Returns the same object, recording every call of these methods.
 * @param readWaited returns the milliseconds that this thread has waited for the CPU so far.
 */
export function recordCalls<T extends object>(
  target: T,
  methods: readonly (keyof T & string)[],
  readWaited: () => number = readWaitedMs,
): { recorded: T; calls: CallRecord[] } {
  const calls: CallRecord[] = [];
  const record = (method: string, work: (...args: unknown[]) => unknown, args: unknown[]): unknown => {
    const call: CallRecord = { method, outcome: { kind: "pending" }, blockedMs: 0, changedArguments: false };
    calls.push(call);
    // Signals and shared state may change, but not a conversation.
    const before = args.map((arg) => (Array.isArray(arg) ? structuredClone(arg) : undefined));
    const started = performance.now();
    const waited = readWaited();
    const end = (outcome: CallRecord["outcome"]) => {
      call.outcome = outcome;
      call.changedArguments = args.some((arg, i) => Array.isArray(arg) && !isDeepStrictEqual(arg, before[i]));
    };
    const measure = () => {
      call.blockedMs = performance.now() - started - (readWaited() - waited);
    };
    try {
      const value = work.apply(target, args);
      measure();
      return Promise.resolve(value).then(
        (result) => {
          end({ kind: "returned", value: result });
          return result;
        },
        (error) => {
          end({ kind: "threw", error });
          throw error;
        },
      );
    } catch (error) {
      measure();
      end({ kind: "threw", error });
      throw error;
    }
  };
  const recorded = new Proxy(target, {
    get(object, name) {
      const value: unknown = Reflect.get(object, name, object);
      if (typeof value !== "function") return value;
      if (!(methods as readonly (string | symbol)[]).includes(name)) return value.bind(object);
      return (...args: unknown[]) => record(String(name), value as (...args: unknown[]) => unknown, args);
    },
  });
  return { recorded, calls };
}

/** Milliseconds for which this thread was ready to run but had no CPU; 0 where the kernel does not count them. */
function readWaitedMs(): number {
  try {
    return Number(readFileSync("/proc/thread-self/schedstat", "utf8").split(" ")[1]) / 1e6 || 0;
  } catch {
    return 0;
  }
}
