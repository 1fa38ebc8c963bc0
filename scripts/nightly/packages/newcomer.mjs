// A newcomer's way from an empty folder to a task of their own that is trained: every command, as typed, with its time.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const people = ["Emma", "Jack", "Noah", "Zoe", "Lucy"];

/** The newcomer's own problems: a shop's questions. They replace the rows that `init` made. */
function makeShopRows(count, first) {
  return Array.from({ length: count }, (_, i) => {
    const n = first + i;
    const [a, b, c] = [2 + ((n * 7) % 11), 2 + ((n * 5) % 13), 2 + ((n * 3) % 23)];
    const person = people[n % people.length];
    const [question, total] =
      n % 2 === 0
        ? [`${person} buys ${a} pens for ${b} dollars each. How many dollars in total?`, a * b]
        : [
            `${person} buys ${a} pens for ${b} dollars each and a book for ${c} dollars. How many dollars in total?`,
            a * b + c,
          ];
    return {
      data_source: "shop",
      prompt: [
        { role: "system", content: "You solve problems. Use the tool to compute, then answer with ####." },
        { role: "user", content: question },
      ],
      reward_model: { style: "rule", ground_truth: String(total) },
    };
  });
}

const toLines = (rows) => rows.map((row) => `${JSON.stringify(row)}\n`).join("");

/** The newcomer's edits; a person's time for them is not counted. */
function editTask(folder) {
  writeFileSync(join(folder, "data", "train.jsonl"), toLines(makeShopRows(256, 0)));
  writeFileSync(join(folder, "data", "val.jsonl"), toLines(makeShopRows(48, 1000)));
  const edit = (file, from, to) => {
    const path = join(folder, file);
    const text = readFileSync(path, "utf8");
    if (!text.includes(from)) throw new Error(`${file} has no ${from}`);
    writeFileSync(path, text.replaceAll(from, to));
  };
  edit("tool.ts", "Evaluates an arithmetic expression.", "The till of the shop: adds and multiplies prices.");
  edit("tool.ts", "myTool", "till");
  edit("tools.yaml", "myTool", "till");
  edit("interaction.ts", "That is wrong. Use the tool to compute", "The shop says no. Use the tool to compute");
}

/**
 * Goes that way in `cwd`, an empty folder.
 * @param run runs a program there and gives its stdout; it throws where the program fails.
 * @param env of every command: where npm finds the packages, and an empty cache.
 * @returns `{ command, seconds }` of each step, and held-out success before and after.
 */
export async function walk(cwd, run, env) {
  const steps = [];
  const type = async (command, folder = cwd) => {
    const started = performance.now();
    const said = await run("sh", ["-c", command], { cwd: folder, env });
    steps.push({ command, seconds: Math.round((performance.now() - started) / 100) / 10 });
    return said;
  };
  mkdirSync(cwd, { recursive: true });
  await type("npm create --yes cria shop");
  const shop = join(cwd, "shop");
  steps.push({ command: "cd shop", seconds: 0 });
  await type("npm install", shop);
  await type("npx cria --help", shop);
  await type("npm run check", shop);
  await type("npm run rollout", shop);
  editTask(shop);
  steps.push({ command: "(an editor: own rows, own tool, own feedback)", seconds: null });
  await type("npm run types", shop);
  await type("npm run check", shop);
  await type("npm run train", shop);
  await type("npm run eval", shop);
  await type("npm run export", shop);
  const lines = readFileSync(join(shop, "runs", "shop", "first", "metrics.jsonl"), "utf8")
    .trim()
    .split("\n");
  const [first, last] = [lines[0], lines[lines.length - 1]].map((line) => JSON.parse(line));
  const key = Object.keys(first).find((name) => /^val-core\/shop\/.*mean@1$/.test(name));
  if (key === undefined) throw new Error("the run's first metrics have no validation");
  return { steps, before: first[key], after: last[key] };
}
