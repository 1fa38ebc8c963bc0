// Prints the configuration of a nats-server with the keys in a file (nkeys-server.yaml), and their permissions.
//
//   node write-config.mjs nkeys-server.yaml > nats.conf
//
// Needs: npm install @cria/cluster yaml
import { readFileSync } from "node:fs";
import { describeNatsServer } from "@cria/cluster";
import { parse } from "yaml";

const [file] = process.argv.slice(2);
if (!file) throw new Error("usage: node write-config.mjs nkeys-server.yaml");
console.log(describeNatsServer(parse(readFileSync(file, "utf8"))));
