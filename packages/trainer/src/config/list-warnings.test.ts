import { expect, it } from "vitest";
import { listWarnings } from "./list-warnings.js";
import { trainConfigSchema } from "./train-config.js";

it("one conversation of a prompt is warned of where rewards compare it with others, and not where a teacher alone teaches", () => {
  const warnsOf = (n: number, distillation = {}) =>
    listWarnings(
      trainConfigSchema.parse({
        actor_rollout_ref: { model: { path: "m.gguf" }, rollout: { n } },
        data: { train_files: "r.jsonl" },
        distillation,
      }),
    ).some(({ key }) => key === "actor_rollout_ref.rollout.n");
  const teacher_models = { trained: { lora_adapter_path: "a.gguf" } };
  const taught = (use_task_rewards: boolean) => ({
    ...{ enabled: true, teacher_models },
    distillation_loss: { use_task_rewards },
  });
  expect(warnsOf(1)).toBe(true);
  expect(warnsOf(2)).toBe(false);
  expect(warnsOf(1, taught(true))).toBe(true);
  expect(warnsOf(1, taught(false))).toBe(false);
});
