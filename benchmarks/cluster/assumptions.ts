/** What the simulation assumes, as a table: made from the constants that it runs with. */
import { alignTable } from "../pages/tables.js";
import { designs, GROWN_CONVERSATIONS, places, SLOTS } from "./scenarios.js";
import {
  BLOB_ROUND_TRIPS,
  FAST_BLOB_NANOSECONDS,
  JOB_ROUND_TRIPS,
  JOB_TOKEN_BYTES,
  PIECE_BYTES,
  RESULT_TOKEN_BYTES,
  SERVER_CORES,
} from "./simulation/setup.js";
import { defaultWorkload as workload } from "./simulation/workload.js";

const toGbit = (rate: number) => `${(rate * 8) / 1e9} Gbit/s`;
const toMs = (seconds: number) => `${Number((seconds * 1e3).toPrecision(2))} ms`;

export function formatAssumptions(): string {
  const { desk, rack, sites } = places;
  const near = ({ network }: { network: (typeof rack)["network"] | (typeof desk)["network"] }) =>
    `${toGbit(network.serverRate)} at the server, ${toGbit(network.workerRate)} at each worker, each way; ${toMs(network.roundTrip)} there and back`;
  const lines = [
    [
      "conversations",
      `${workload.prompts} prompts x ${workload.samples}, ${workload.turns} turns; where the batch grows, at least ${GROWN_CONVERSATIONS} for each worker`,
    ],
    [
      "their tokens",
      `${workload.promptTokens} of prompt, ${workload.toolTokens} of each tool's answer, ${workload.sampledTokens} sampled in the mean: lognormal, sigma ${workload.spread}, cut at ${workload.mostSampledTokens}; nothing is shared between conversations`,
    ],
    [
      "tools",
      `answer after ${workload.toolSeconds} s in the mean (exponential); who waits leaves the engine to others`,
    ],
    [
      "a worker",
      `${SLOTS} conversations at once, one score or gradient at once; each gets its first conversation before anybody a second; all workers are alike; none leaves, no job is lost`,
    ],
    [
      "other models",
      "job times go with the operations of a token: 2 for each weight of a matrix, attention over half of a conversation; training takes 2 passes over the matrices, 3 in full training, and half of the tokens meet the output matrix. Full training runs on F32 weights, which is slower than this says",
    ],
    [
      "faster workers",
      "every job is that many times faster, those of the coordinator's own audits too; CPUs that send, hash and add are not",
    ],
    [
      "a step",
      `one optimizer step; ${workload.scorePasses} pass of scores; each phase begins when the one before has ended`,
    ],
    ["desk", near(desk)],
    ["rack", near(rack)],
    [
      "sites",
      `${sites.network.sites}, with ${toGbit(sites.network.lineRate)} each way and ${toMs(sites.network.lineRoundTrip)} to the first, where the server is; within one as in a rack. One stream fills a line`,
    ],
    [
      "the server",
      `beside the coordinator, ${SERVER_CORES} cores: one writes a stream, all read. Network, reading, writing: first come, first served`,
    ],
    ["a job", `${JOB_ROUND_TRIPS} round trips; ${JOB_TOKEN_BYTES} bytes a token out, ${RESULT_TOKEN_BYTES} back`],
    [
      "a blob",
      `${BLOB_ROUND_TRIPS} round trips, and one for each ${designs.today.piecesInFlight === 1 ? "" : `${designs.today.piecesInFlight} `}piece of ${PIECE_BYTES / 1024} KiB that is put (with faster blobs: for ${designs.fast.piecesInFlight})`,
    ],
    [
      "faster blobs",
      `${FAST_BLOB_NANOSECONDS} ns of a client's CPU per byte, which a trial program needed with Node's SHA-256`,
    ],
    ["audits", `${workload.auditShare * 100} % of the jobs, evenly, one after another on the coordinator's engine`],
  ];
  return alignTable([["assumed", ""], ...lines]);
}
