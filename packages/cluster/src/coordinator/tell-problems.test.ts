import { ClusterError } from "@cria/core";
import { expect, it } from "vitest";
import { tellProblems } from "./tell-problems.js";

it("reports problems of the bus each time, those of its size and members once, and no others", () => {
  let tell!: (problem: ClusterError) => void;
  const told: string[] = [];
  const bus = {
    watchProblems(onProblem: typeof tell) {
      tell = onProblem;
    },
  };
  tellProblems(bus, (event) => void told.push((event as { text: string }).text), new AbortController().signal);
  const count = (code: `cluster/${string}`) => {
    for (const subject of ["a", "a", "b"]) tell(new ClusterError("is so", { code, subject }));
    return told.splice(0).length;
  };
  expect(count("cluster/store-lost")).toBe(3);
  expect(count("cluster/queue-full")).toBe(2);
  expect(count("cluster/worker")).toBe(0);
});
