import { describe, expect, it } from "vitest";
import { checkConfig } from "../check-config.js";
import { writeKey } from "../raw-config.js";
import { trainConfigSchema } from "../train-config.js";
import { refuseKeys } from "./refuse-keys.js";
import { describeSetAside, setAsideForeignKeys } from "./set-aside-keys.js";
import { frozenKeys } from "./vision-keys.js";

const model = "actor_rollout_ref.model";

function parse(keys: Record<string, unknown>, mmproj: string | null = "mmproj.gguf") {
  const raw = {};
  const required = { [`${model}.path`]: "m.gguf", [`${model}.mmproj`]: mmproj, "data.train_files": "t.jsonl" };
  for (const [key, value] of Object.entries({ ...required, ...keys })) writeKey(raw, key, value);
  const { setAside, refusals } = setAsideForeignKeys(raw);
  const { image_min_tokens, image_max_tokens } = checkConfig(trainConfigSchema, raw, "c.yaml").actor_rollout_ref.model;
  return { tokens: [image_min_tokens, image_max_tokens], notes: describeSetAside(setAside).join("\n"), refusals };
}

describe("verl's keys of vision", () => {
  it.each(frozenKeys)("%s is taken if it asks for a frozen tower", (key) => {
    for (const value of [true, null]) expect(parse({ [key]: value }).refusals).toEqual([]);
    const { refusals } = parse({ [key]: false });
    expect(() => refuseKeys(refusals, "c.yaml")).toThrow(
      expect.objectContaining({
        code: "config/not-supported",
        subject: `c.yaml: ${key}`,
        expected: "true or null",
        received: "false",
        remedy: expect.stringContaining("model.mmproj"),
      }),
    );
    // verl's own default, which says nothing of a model that reads text alone.
    const alone = parse({ [key]: false }, null);
    expect(alone.refusals).toEqual([]);
    expect(alone.notes).toMatch(/has no effect: there is no vision tower without/);
  });

  it("limits of pixels are limits of tokens, by the size of a patch", () => {
    const pixels = { min_pixels: 4 * 28 * 28, max_pixels: 1280 * 28 * 28 };
    const { tokens, notes } = parse({ "data.mm_processor_kwargs": { ...pixels, do_resize: true } });
    expect(tokens).toEqual([4, 1280]);
    expect(notes).toMatch(
      /max_pixels has no effect: it is taken as .*image_max_tokens: 1280, tokens of 28 x 28 pixels/,
    );
    expect(parse({ "data.mm_processor_kwargs": pixels, "data.image_patch_size": 16 }).tokens).toEqual([3, 980]);
    const own = parse({ "data.mm_processor_kwargs": pixels, [`${model}.image_max_tokens`]: 99 });
    expect(own.tokens).toEqual([4, 99]);
    expect(parse({ "data.mm_processor_kwargs": { max_pixels: 5 } }).tokens).toEqual([null, 1]);
    expect(parse({ "data.mm_processor_kwargs": {} }).tokens).toEqual([null, null]);
  });

  it("names keys without effect, and refuses impossible values", () => {
    const { notes, refusals } = parse({
      "data.return_multi_modal_inputs": true,
      "data.image_patch_size": 14,
      "data.audio_key": "audios",
      "actor_rollout_ref.rollout.limit_images": 4,
    });
    expect(refusals).toEqual([]);
    expect(notes).toMatch(/return_multi_modal_inputs has no effect: images stay files/);
    expect(notes).toMatch(/limit_images has no effect: a conversation shows as many images as fit/);
  });
});
