import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { type ChecksOf, checkOptions, optionChecks } from "./check-options.js";
import type { ConfigError } from "./errors/config-error.js";
import { findNearest } from "./find-nearest.js";

interface Options {
  learningRate?: number;
  lora?: { rank?: number } | null;
}

const checks: ChecksOf<Required<Options>> = {
  learningRate: optionChecks.number,
  lora: [(value) => value === null || typeof value === "object", "{ rank }, or null", { rank: optionChecks.count }],
};

function refuse(options: object): ConfigError {
  try {
    checkOptions("train", options as Options, checks);
  } catch (error) {
    return error as ConfigError;
  }
  throw new Error("was taken");
}

describe("options", () => {
  it("that are right, left out or undefined are taken", () => {
    for (const options of [{}, { learningRate: undefined }, { learningRate: 1, lora: { rank: 4 } }, { lora: null }])
      checkOptions("train", options, checks);
  });

  it("that are misspelt are refused with the nearest one", () => {
    const code = "config/unknown-key";
    expect(refuse({ lerningRate: 1 })).toMatchObject({
      code,
      subject: "train: lerningRate",
      expected: 'perhaps "learningRate"',
    });
    expect(refuse({ lora: { rnk: 1 } })).toMatchObject({ subject: "train: lora.rnk", expected: 'perhaps "lora.rank"' });
    expect(refuse({ toString: 1 })).toMatchObject({ code, expected: "learningRate, lora" });
  });

  it("with a value of a wrong type are refused", () => {
    const code = "config/bad-value";
    expect(refuse({ learningRate: "1" })).toMatchObject({ code, subject: "train: learningRate", received: '"1"' });
    expect(refuse({ lora: { rank: 0 } })).toMatchObject({ code, subject: "train: lora.rank" });
    expect(refuse([])).toMatchObject({ code, subject: "train" });
  });
});

it("a name is near another that is spelled alike, or that alone has all of its words", () => {
  const known = ["total_training_steps", "total_epochs", "totalGoals"];
  expect(
    ["total_epoch", "total_steps", "steps", "totalgoal", "other_words"].map((name) => findNearest(name, known)),
  ).toEqual(["total_epochs", "total_training_steps", undefined, "totalGoals", undefined]);
});

it("a printed error has each detail once, and its code", () => {
  const printed = inspect(refuse({ lerningRate: 1 }));
  expect(printed.split("learningRate")).toHaveLength(2);
  expect(printed).toContain("config/unknown-key");
});
