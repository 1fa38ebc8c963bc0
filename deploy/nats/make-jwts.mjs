// Makes the JWTs of one bus: an operator, an account, and a user for each machine, with the rights of its role.
//
//   node make-jwts.mjs FOLDER coordinator=trainer worker=anna worker=ben observer=me [--days 90] [--prefix cria]
//   node make-jwts.mjs FOLDER --revoke ben
//
// `worker=anna` may only be the worker `anna` (cria worker --id anna); `workers=fleet` may be any worker, for machines
// that share a file.
//
// Writes FOLDER/NAME.creds for each name that has none yet (--creds of `cria worker`), good for so many days (default:
// without end), and FOLDER/jwt.conf, which jwt-server.conf includes. The server needs only jwt.conf, a machine only its
// own file. FOLDER/operator.nk, account.nk and system.nk sign further ones: keep them off all of these machines. A
// revoked user is refused once the server has read jwt.conf again (nats-server --signal reload).
//
// Needs: npm install @cria/cluster @nats-io/jwt
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { listPermissions } from "@cria/cluster";
import {
  createAccount,
  createOperator,
  createUser,
  encodeAccount,
  encodeOperator,
  encodeUser,
  fmtCreds,
  fromSeed,
  parseCreds,
} from "@nats-io/jwt";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { days: { type: "string" }, prefix: { type: "string" }, revoke: { type: "string", multiple: true } },
});
const [folder, ...users] = positionals;
if (!folder) throw new Error("usage: node make-jwts.mjs FOLDER ROLE=NAME...");
mkdirSync(folder, { recursive: true });
const place = (name) => join(folder, name);
const writeSecret = (file, bytes) => writeFileSync(file, bytes, { mode: 0o600, flag: "wx" });

/** The key in a file, made the first time. */
function openKey(file, create) {
  if (!existsSync(file)) writeSecret(file, create().getSeed());
  return fromSeed(readFileSync(file));
}
const operator = openKey(place("operator.nk"), createOperator);
const account = openKey(place("account.nk"), createAccount);
// A server with operators and JetStream asks for one; it has no users.
const system = openKey(place("system.nk"), createAccount);

for (const user of users) {
  const [kind, name] = user.split("=");
  if (!["coordinator", "worker", "workers", "observer"].includes(kind) || !/^[A-Za-z0-9][\w-]{0,63}$/.test(name ?? ""))
    throw new Error(`${user}: expected coordinator=NAME, worker=NAME, workers=NAME or observer=NAME`);
  const role = /** @type {"coordinator" | "worker" | "observer"} */ (kind === "workers" ? "worker" : kind);
  if (existsSync(place(`${name}.creds`))) continue;
  const permissions = {
    pub: { allow: listPermissions(role, values.prefix, kind === "worker" ? name : undefined) },
    sub: { allow: [`_INBOX_${role}.>`] },
  };
  const exp = values.days && { exp: Math.floor(Date.now() / 1000 + 86_400 * Number(values.days)) };
  const pair = createUser();
  writeSecret(place(`${name}.creds`), fmtCreds(await encodeUser(name, pair, account, permissions, { ...exp }), pair));
}

const revoked = existsSync(place("revoked.json")) ? JSON.parse(readFileSync(place("revoked.json"), "utf8")) : {};
for (const name of values.revoke ?? []) {
  const { uc } = await parseCreds(readFileSync(place(`${name}.creds`)));
  revoked[uc.sub] = Math.floor(Date.now() / 1000);
}
writeFileSync(place("revoked.json"), JSON.stringify(revoked));

// -1: the server's own bounds hold.
const unbounded = {
  mem_storage: -1,
  disk_storage: -1,
  streams: -1,
  consumer: -1,
  conn: -1,
  subs: -1,
  data: -1,
  payload: -1,
};
const limits = { ...unbounded, leaf: -1, imports: 0, exports: 0, wildcards: true };
const bus = await encodeAccount("cria", account, { limits, revocations: revoked }, { signer: operator });
const empty = await encodeAccount("system", system, {}, { signer: operator });
// A running server takes other accounts and users, but no other text of its operator.
if (!existsSync(place("operator.jwt"))) writeFileSync(place("operator.jwt"), await encodeOperator("cria", operator));
writeFileSync(
  place("jwt.conf"),
  `operator: ${readFileSync(place("operator.jwt"), "utf8")}
system_account: ${system.getPublicKey()}
resolver: MEMORY
resolver_preload: {
  ${account.getPublicKey()}: ${bus}
  ${system.getPublicKey()}: ${empty}
}
`,
);
