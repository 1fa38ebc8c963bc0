/**
 * Images encoded a second, tokens a second after one, and a group of samples that sees the same one, compared with
 * llama.cpp's own mtmd, which encodes for each request. Both have the same libraries, model, projector and picture, and
 * run in turn; each time starts with the picture's file. Each side is measured with its faster number of threads.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { drawPicture } from "@cria/engine/testing";
import type { BenchmarkOptions } from "../benchmark.js";
import { countCores } from "../machine.js";
import { median } from "../measure.js";
import { StockMtmd } from "../peers/stock-mtmd.js";
import type { Measured, Row, UsedSetting } from "../row.js";
import { THREADS } from "../settings.js";
import { OurSide } from "./our-side.js";
import { type Pair, pairs } from "./pairs.js";

const ROUNDS = 5;
const SAMPLES = 8;
const TOKENS = 32;
const TEXT = "What is this?";
const PEER = "llama.cpp's mtmd";

export async function run({ includes, log }: BenchmarkOptions): Promise<Measured> {
  // Load of the last minute, before anything is measured.
  const [load] = loadavg() as [number];
  const busy = load > 0.5 ? `measured on a busy machine, load ${load.toFixed(1)}` : null;
  const rows: Row[] = [];
  for (const pair of pairs) if (includes(pair.title)) rows.push(...(await runPair(pair, busy, log)));
  return { rows };
}

/** Seconds of each counted round. */
interface Times {
  /** One image, to its vectors. */
  encode: number[];
  /** One image, and tokens behind it. */
  ask: number[];
  /** As many answers as a group has samples; ours at once, the peer's one after another. */
  group: number[];
}

interface Contender {
  side: "ours" | typeof PEER;
  setting: string;
  times: Times;
  /** Images encoded for each group. */
  encoded: number[];
  round(number: number): Promise<Record<keyof Times, number>>;
  dispose(): Promise<void>;
}

async function runPair(pair: Pair, busy: string | null, log: (text: string) => void): Promise<Row[]> {
  const files = await pair.open(log);
  const folder = mkdtempSync(join(tmpdir(), "cria-benchmark-"));
  const picture = drawPicture(pair.width, pair.height);
  const file = join(folder, "picture.bmp");
  writeFileSync(file, picture);
  const cores = Math.min(THREADS, countCores());
  const contenders: Contender[] = [];
  try {
    for (const threads of new Set([cores, ...(pair.small ? [1] : [])])) {
      contenders.push(await openOurs(pair, files, threads, picture));
      contenders.push(await openPeer(pair, files, threads, file, log));
    }
    await checkPrompts(pair, files, file, picture, log);
    // The first round warms up; another order each round.
    for (let round = 0; round <= ROUNDS; round++)
      for (let i = 0; i < contenders.length; i++) {
        const contender = contenders[(i + round) % contenders.length]!;
        const seconds = await contender.round(round);
        const shown = Object.entries(seconds).map(([what, time]) => `${what} ${(1000 * time).toFixed(1)} ms`);
        log(`${pair.title}: ${contender.side}, ${contender.setting}: ${shown.join(", ")}`);
        if (round > 0) for (const what of whats) contender.times[what].push(seconds[what]);
      }
  } finally {
    for (const contender of contenders) await contender.dispose();
    rmSync(folder, { recursive: true });
  }
  return makeRows(pair, contenders, busy);
}

const whats = ["encode", "ask", "group"] as const;
const noTimes = (): Times => ({ encode: [], ask: [], group: [] });
const nameThreads = (threads: number) => `${threads} ${threads === 1 ? "thread" : "threads"}`;

async function openOurs(pair: Pair, files: Files, threads: number, picture: Uint8Array): Promise<Contender> {
  const ours = await OurSide.load(pair, files, threads, SAMPLES);
  const encoded: number[] = [];
  let made = 0;
  /** The same size and other pixels: no file is seen twice. */
  const draw = () => {
    const bytes = Uint8Array.from(picture);
    new DataView(bytes.buffer).setUint32(bytes.length - 4, ++made, true);
    return bytes;
  };
  return {
    side: "ours",
    setting: nameThreads(threads),
    times: noTimes(),
    encoded,
    async round() {
      const encode = await ours.encode(draw());
      const ask = await ours.ask(draw(), TEXT, { tokens: TOKENS });
      const group = await ours.ask(draw(), TEXT, { tokens: TOKENS, samples: SAMPLES });
      encoded.push(group.encoded);
      return { encode, ask: ask.seconds, group: group.seconds };
    },
    dispose: () => ours.dispose(),
  };
}

async function openPeer(
  pair: Pair,
  files: Files,
  threads: number,
  file: string,
  log: (text: string) => void,
): Promise<Contender> {
  const peer = await StockMtmd.start({ ...files, threads, contextSize: pair.contextSize }, log);
  return {
    side: PEER,
    setting: nameThreads(threads),
    times: noTimes(),
    encoded: [SAMPLES],
    async round() {
      const encode = (await peer.encode(file)).seconds;
      const ask = (await peer.ask(file, TOKENS, TEXT)).seconds;
      let group = 0;
      for (let i = 0; i < SAMPLES; i++) group += (await peer.ask(file, TOKENS, TEXT)).seconds;
      return { encode, ask, group };
    },
    dispose: () => peer.dispose(),
  };
}

interface Files {
  path: string;
  projector: string;
}

/** Both must evaluate prompts of the same length. */
async function checkPrompts(
  pair: Pair,
  files: Files,
  file: string,
  picture: Uint8Array,
  log: (text: string) => void,
): Promise<void> {
  const ours = await OurSide.load(pair, files, 1, 1);
  const peer = await StockMtmd.start({ ...files, threads: 1, contextSize: pair.contextSize }, log);
  const mine = (await ours.ask(picture, TEXT, { tokens: 1 })).positions;
  const its = (await peer.ask(file, 1, TEXT)).positions;
  await Promise.all([ours.dispose(), peer.dispose()]);
  if (mine !== its) throw new Error(`${pair.title}: prompts of ${mine} tokens and ${PEER}'s ${its}`);
}

function makeRows({ title, small, groupTarget }: Pair, contenders: readonly Contender[], busy: string | null): Row[] {
  const choose = (side: Contender["side"], what: keyof Times, of: (seconds: number) => number) => {
    const own = contenders.filter((contender) => contender.side === side);
    const tried = own.map(({ setting, times }) => [setting, of(median(times[what]))] as const);
    const [used, figure] = tried.reduce((a, b) => (b[1] > a[1] ? b : a));
    return { figure, setting: { used, tried: Object.fromEntries(tried) } satisfies UsedSetting };
  };
  const compare = (metric: string, what: keyof Times, of: (seconds: number) => number, least: number | null): Row => {
    const [mine, its] = [choose("ours", what, of), choose(PEER, what, of)];
    return {
      case: title,
      metric,
      ours: mine.figure,
      peers: { [PEER]: its.figure },
      settings: { ours: mine.setting, [PEER]: its.setting },
      target: least === null ? null : least === 1 ? "at least level" : `at least ${least} times ${PEER}`,
      ...(busy === null ? {} : { crippled: { [PEER]: busy } }),
      met: least === null || busy !== null ? null : mine.figure >= least * its.figure,
    };
  };
  const encoded = contenders.filter(({ side }) => side === "ours").flatMap((contender) => contender.encoded);
  // If an image takes a fraction of a millisecond, handing it over is most of it.
  const level = small ? null : 0.95;
  return [
    compare("images encoded per second", "encode", (seconds) => 1 / seconds, level),
    compare(
      `tokens per second behind an image, ${TOKENS} of them, deterministic: true`,
      "ask",
      (seconds) => TOKENS / seconds,
      level,
    ),
    compare(
      `tokens per second of ${SAMPLES} samples of one prompt with an image, deterministic: true`,
      "group",
      (s) => (SAMPLES * TOKENS) / s,
      groupTarget,
    ),
    {
      case: title,
      metric: `images encoded for ${SAMPLES} samples of one prompt`,
      ours: Math.max(...encoded),
      peers: { [PEER]: SAMPLES },
      target: "1",
      met: Math.max(...encoded) === 1,
    },
  ];
}
