import { join } from "node:path";
import { DataError } from "@cria/core";
import { readRecords } from "./read-records.js";
import { type ParquetField, type ParquetFields, writeParquet } from "./write-parquet.js";

// The rows of GSM8K are no part of the example: `cria data gsm8k` writes them without it.

/**
 * tool: rows with an answer-checking tool and its ground truth. interaction: rows with a user who comments on wrong
 * answers.
 */
export type Gsm8kShape = "tool" | "interaction";
export const gsm8kShapes: readonly Gsm8kShape[] = ["tool", "interaction"];
export type Gsm8kSplit = "train" | "test";

const instructions: Record<Gsm8kShape, string> = {
  tool:
    "You solve math problems. Think step by step, check your answer with the tool calc_gsm8k_reward before you give it, " +
    "and correct it if it is wrong. End with the final answer after ####, for example: #### 42",
  interaction:
    "You solve math problems. Think step by step. If you are told that your answer is wrong, look for the mistake and " +
    "answer again. End with the final answer after ####, for example: #### 42",
};

/** One GSM8K record as a row. @throws DataError naming its place when it has no question or no "#### number". */
export function convertGsm8kRecord(
  record: unknown,
  index: number,
  place: string,
  { shape, split }: { shape: Gsm8kShape; split: Gsm8kSplit },
) {
  const { question, answer } = (record ?? {}) as { question?: unknown; answer?: unknown };
  const groundTruth =
    typeof answer === "string" ? /####\s*(-?[\d.,]+)/.exec(answer)?.[1]?.replace(/,/g, "") : undefined;
  if (typeof question !== "string" || typeof answer !== "string" || groundTruth === undefined) {
    throw new DataError("is not a GSM8K record", {
      code: "data/bad-row",
      subject: place,
      expected: 'question, and an answer that ends with "#### number"',
      received: JSON.stringify(record)?.slice(0, 200),
    });
  }
  const kwargs =
    shape === "tool"
      ? {
          need_tools_kwargs: true,
          tools_kwargs: { calc_gsm8k_reward: { create_kwargs: { ground_truth: groundTruth } } },
        }
      : { interaction_kwargs: { name: "gsm8k", query: question, ground_truth: groundTruth } };
  return {
    data_source: "openai/gsm8k",
    agent_name: "tool_agent",
    prompt: [
      { role: "system", content: instructions[shape] },
      { role: "user", content: question },
    ],
    ability: "math",
    reward_model: { style: "rule", ground_truth: groundTruth },
    extra_info: { split, index, question, answer, ...kwargs },
  };
}

function describeColumns(shape: Gsm8kShape): ParquetFields {
  const strings = (...names: string[]): ParquetField => ({
    struct: Object.fromEntries(names.map((name) => [name, "string"])),
  });
  const kwargs: ParquetFields =
    shape === "tool"
      ? {
          need_tools_kwargs: "boolean",
          tools_kwargs: {
            struct: { calc_gsm8k_reward: { struct: { create_kwargs: strings("ground_truth") } } },
          },
        }
      : { interaction_kwargs: strings("name", "query", "ground_truth") };
  return {
    data_source: "string",
    agent_name: "string",
    prompt: { list: strings("role", "content") },
    ability: "string",
    reward_model: strings("style", "ground_truth"),
    extra_info: { struct: { split: "string", index: "int64", question: "string", answer: "string", ...kwargs } },
  };
}

export interface ConvertedFile {
  file: string;
  rows: number;
}

/**
 * Writes `<out>/train.parquet` and `<out>/test.parquet` from records with `question` and `answer`, as GSM8K is
 * published.
 * @param source a folder with train.jsonl and test.jsonl, or the files of each split.
 * @throws DataError when a file is missing or a record is malformed; that split is then not written.
 */
export async function convertGsm8k(
  source: string | Readonly<Record<Gsm8kSplit, readonly string[]>>,
  out: string,
  shape: Gsm8kShape,
): Promise<Record<Gsm8kSplit, ConvertedFile>> {
  const convert = async (split: Gsm8kSplit): Promise<ConvertedFile> => {
    const files = typeof source === "string" ? [join(source, `${split}.jsonl`)] : source[split];
    const records = (await Promise.all(files.map(readRecords))).flat();
    const rows = records.map(({ value, place }, i) => convertGsm8kRecord(value, i, place, { shape, split }));
    const file = join(out, `${split}.parquet`);
    await writeParquet(file, describeColumns(shape), rows);
    return { file, rows: rows.length };
  };
  return { train: await convert("train"), test: await convert("test") };
}
