// Makes a key for one machine, on that machine: the secret half goes into a file that only its owner can read, the
// public half, which is no secret, is printed.
//
//   node make-key.mjs worker.nk
//
// Needs: npm install @nats-io/jwt. The tool `nk` of NATS does the same: nk -gen user
import { writeFileSync } from "node:fs";
import { createUser } from "@nats-io/jwt";

const [file] = process.argv.slice(2);
if (!file) throw new Error("usage: node make-key.mjs FILE");
const pair = createUser();
writeFileSync(file, `${new TextDecoder().decode(pair.getSeed())}\n`, { mode: 0o600, flag: "wx" });
console.log(pair.getPublicKey());
