/**
 * A child that tries the doors of its process, as a program would that has left its interpreter. Its answer is a text
 * of `door: outcome`.
 */
import { execSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import process from "node:process";
import { readJson, writeJson } from "../frames.mjs";
import { lockRealm } from "../lock-realm.mjs";

const settings = readJson();
const env = Object.keys(process.env);
const { makeFunction } = { makeFunction: () => (() => {}).constructor("return 1")() };
const importFresh = (name) => import(name);

const lines = [];
async function attempt(door, action) {
  try {
    lines.push(`${door}: ${await action()}`);
  } catch (error) {
    lines.push(`${door}: ${error.code ?? error.name}`);
  }
}

await attempt("environment", () => env.join());
await attempt("read", () => readFileSync(settings.secret, "utf8"));
await attempt("list", () => readdirSync("/"));
await attempt("write", () => writeFileSync("file", "x"));
await attempt("write elsewhere", () => writeFileSync(settings.secret, "x"));
await attempt("shell", () => execSync("id"));
lockRealm();
await attempt("code from text", makeFunction);
await attempt("connect", async () => (await importFresh("node:net")).connect(1));
await attempt("resolve", async () => (await importFresh("node:dns")).lookup("example.com", () => {}));
await attempt("request", async () => (await importFresh("node:https")).get("https://example.com"));
await attempt("start a thread", async () => new (await importFresh("node:worker_threads")).Worker("", { eval: true }));
await attempt("globals", () =>
  ["process", "fetch", "WebSocket", "eval", "Function"].map((name) => typeof globalThis[name]).join(),
);
writeJson({ ready: true });
readJson();
writeJson({ answer: { status: "ok", output: lines.join("\n"), truncated: false } });
