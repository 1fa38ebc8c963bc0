import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DataError } from "@cria/core";
import { readRecords } from "@cria/rollout";

const instruction =
  "Solve the problem step by step. Check your answer with the tool, then give it after ####, for example: #### 42";

/** One GSM8K record as a dataset row with the answer tool. */
export function convertRecord(record: unknown, index: number, place: string): Record<string, unknown> {
  const { question, answer } = (record ?? {}) as { question?: unknown; answer?: unknown };
  const groundTruth =
    typeof answer === "string" ? /####\s*(-?[\d.,]+)/.exec(answer)?.[1]?.replace(/,/g, "") : undefined;
  if (typeof question !== "string" || groundTruth === undefined) {
    throw new DataError("is not a GSM8K record", {
      code: "data/bad-row",
      subject: place,
      expected: 'question, and an answer that ends with "#### number"',
      received: JSON.stringify(record).slice(0, 200),
    });
  }
  return {
    data_source: "openai/gsm8k",
    prompt: [{ role: "user", content: `${question}\n${instruction}` }],
    reward_model: { style: "rule", ground_truth: groundTruth },
    extra_info: {
      index,
      need_tools_kwargs: true,
      tools_kwargs: { calc_gsm8k_reward: { create_kwargs: { ground_truth: groundTruth } } },
    },
    agent_name: "tool_agent",
  };
}

/** Converts `<source>/{train,test}.jsonl` to `<target>/{train,test}.jsonl`; returns the number of rows of each. */
export async function convertFolder(source: string, target: string): Promise<Record<string, number>> {
  await mkdir(target, { recursive: true });
  const counts: Record<string, number> = {};
  for (const name of ["train", "test"]) {
    const records = await readRecords(join(source, `${name}.jsonl`));
    const rows = records.map(({ value, place }, i) => JSON.stringify(convertRecord(value, i, place)));
    await writeFile(join(target, `${name}.jsonl`), `${rows.join("\n")}\n`);
    counts[name] = rows.length;
  }
  return counts;
}
