import { expect, it } from "vitest";
import { chatCommand, replayCommand } from "./commands.js";

it("commands are typed as a shell takes them", () => {
  expect(chatCommand("runs/my run's/e")).toBe("cria chat 'runs/my run'\\''s/e'");
  expect(replayCommand("runs/e", { kind: "training", step: 20 }, 3)).toBe(
    "cria replay runs/e --step 20 --trajectory 3",
  );
  expect(replayCommand("runs/e", { kind: "validation", step: 0 }, 3)).toBe(
    "cria replay runs/e --validation --step 0 --trajectory 3",
  );
  expect(replayCommand("runs/e", { kind: "rollout", step: null }, 3)).toBeNull();
});
