import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";

/** slots.cc: a slot's tokens and cells, where llama.cpp's memory may refuse to remove a part of a sequence. */
const build = join(import.meta.dirname, "..", "build");

function run(command: string, args: readonly string[], input?: string): string {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: "utf8", input });
  if (status !== 0) throw new Error(`${command}: ${stdout}${stderr}`);
  return stdout;
}

interface State {
  tokens: number[];
  /** The memory's cells of the slot. */
  cells: number;
  /** Number of tokens that a prompt with the slot's former tokens shares. */
  shared: number;
}

/** The states that the lines print, one after the other. */
function drive(...lines: string[]): State[] {
  const printed = run(join(build, "slots"), [], `${lines.join("\n")}\n`).trimEnd();
  return printed.split("\n").map((line) => {
    const [tokens, cells, shared] = line.split("/").map((part) => part.trim());
    return {
      tokens: tokens!.split(" ").filter(Boolean).map(Number),
      cells: Number(cells),
      shared: Number(shared),
    };
  });
}

beforeAll(() => {
  run("cmake", ["--build", build, "--target", "slots"]);
});

const held = "append 1 10 11 12 13";
const nothing: State = { tokens: [], cells: 0, shared: 0 };

describe("a slot", () => {
  it("keeps the tokens in front of a cut, and their cells", () => {
    expect(drive("slots 1", held, "trim 1 2")).toEqual([{ tokens: [10, 11], cells: 2, shared: 2 }]);
    expect(drive("slots 1", held, "trim 1 4")).toEqual([{ tokens: [10, 11, 12, 13], cells: 4, shared: 4 }]);
    expect(drive("slots 1", held, "clear 1")).toEqual([nothing]);
  });

  it("loses the cells of a batch that failed", () => {
    expect(drive("slots 1", held, "cells 1 3", "fail 1")).toEqual([{ tokens: [10, 11, 12, 13], cells: 4, shared: 4 }]);
  });

  // With cells that its tokens do not name, it would go on behind tokens that no one sees.
  it.each(["trim 1 2", "trim 1 4", "fail 1"])("is empty if the memory refuses to remove a part: %s", (command) => {
    expect(drive("slots 1", held, "cells 1 3", "refuse 1", command)).toEqual([nothing]);
    const again = drive("slots 1", held, "refuse 1", command, "append 1 20 21", "trim 1 1");
    expect(again.at(-1)).toEqual({ tokens: [20], cells: 1, shared: 1 });
  });

  it("that cannot be cut is empty behind any cut", () => {
    expect(drive("slots 0", held, "trim 1 2")).toEqual([nothing]);
    expect(drive("slots 0", held, "trim 1 4")).toEqual([{ tokens: [10, 11, 12, 13], cells: 4, shared: 4 }]);
    expect(drive("slots 0", held, "cells 1 3", "fail 1")).toEqual([nothing]);
  });
});
