import { readFileSync } from "node:fs";

/** Others may use so much of the machine in a round that counts at once. */
const QUIET = 0.05;
/** Rounds at most, for each that is wanted. */
const PATIENCE = 3;

/**
 * Results of the rounds in which the rest of the machine was least busy. Rounds are taken until enough were quiet, or
 * three times the wanted number. Linux; elsewhere every round counts as quiet.
 * @param own counter of further CPU seconds that belong to the measurement, such as a server's.
 */
export async function takeQuietest<T>(
  take: () => Promise<T>,
  {
    rounds = 5,
    warmUp = 2,
    own = () => 0,
    log,
  }: {
    rounds?: number;
    warmUp?: number;
    own?: () => number;
    log(text: string): void;
  },
): Promise<T[]> {
  for (let round = 0; round < warmUp; round++) await take();
  const taken: { result: T; others: number }[] = [];
  while (taken.length < PATIENCE * rounds && taken.filter(({ others }) => others < QUIET).length < rounds) {
    const before = { ...readCpu(), own: own() + ownSeconds() };
    const result = await take();
    const after = { ...readCpu(), own: own() + ownSeconds() };
    const whole = after.whole - before.whole;
    const others = after.busy - before.busy - (after.own - before.own);
    taken.push({ result, others: whole > 0 ? Math.max(0, others / whole) : 0 });
  }
  taken.sort((a, b) => a.others - b.others);
  const chosen = taken.slice(0, rounds);
  const worst = chosen.at(-1)!.others;
  if (worst >= QUIET)
    log(`others used up to ${(100 * worst).toFixed(0)} % of the machine: measure again when it is idle`);
  return chosen.map(({ result }) => result);
}

function ownSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

/**
 * Seconds of all cores since the machine started: those that were busy, and all. Time that a hypervisor took counts as
 * busy.
 */
function readCpu(): { busy: number; whole: number } {
  let line: string;
  try {
    line = readFileSync("/proc/stat", "utf8").split("\n", 1)[0]!;
  } catch {
    return { busy: 0, whole: 0 };
  }
  // user, nice, system, idle, iowait, irq, softirq, steal, in hundredths.
  const seconds = line
    .trim()
    .split(/\s+/)
    .slice(1, 9)
    .map((ticks) => Number(ticks) / 100);
  const whole = seconds.reduce((sum, value) => sum + value, 0);
  return { busy: whole - seconds[3]! - seconds[4]!, whole };
}
