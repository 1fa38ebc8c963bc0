import {
  cropPicture,
  encodePng,
  type LoadedImage,
  type Picture,
  type PixelBox,
  scalePicture,
  ToolError,
  type ToolSchema,
} from "@cria/core";
import { toImageSource } from "@cria/core/internal";
import { z } from "zod";
import { BaseTool, type CreateOptions, type ToolImages, type ToolResult } from "./base-tool.js";
import { InstanceStore } from "./instance-store.js";
import { readConfig } from "./interactions/read-config.js";
import { defineToolSchema } from "./schema.js";
import { preview } from "./validate-arguments.js";

/** Config of the tool; lengths in pixels unless stated. */
const configSchema = z.looseObject({
  /** Unit of a box: pixels of the image, or thousandths of its width and height. */
  coordinates: z.enum(["pixels", "thousandths"]).default("pixels"),
  /** Shortest side of a region. A smaller box grows around its middle. */
  min_size: z.number().int().min(1).default(28),
  /** Factor by which the region is enlarged. */
  scale: z.number().positive().max(64).default(1),
  /** Most pixels of an answer; a larger one is scaled down. */
  max_pixels: z
    .number()
    .int()
    .min(1)
    .default(1024 * 1024),
});

const inputSchema = z.object({
  bbox_2d: z
    .array(z.number())
    .length(4)
    .describe("The region, as [x1, y1, x2, y2]: its top left corner, and its bottom right one."),
  label: z.string().optional().describe("What the region shows."),
});

/** Largest ratio of a box's sides; longer boxes are refused. */
const maxAspect = 100;
/** Step reward of a call whose box is wrong. */
const wrongBox = -0.05;

interface Instance {
  /** Null: the first image of the prompt. */
  image: LoadedImage | null;
  images: ToolImages;
}

/**
 * Zooms into an image: `image_zoom_in_tool({ bbox_2d: [x1, y1, x2, y2], label })` answers with that region as a PNG.
 * The row's `create_kwargs.image` is the image: bytes, a path, a data address, or the index of an image of the prompt
 * (default 0). Each call zooms into that image, never into an earlier answer.
 */
export class ImageZoomTool extends BaseTool {
  private readonly instances = new InstanceStore<Instance>('tool "image_zoom_in_tool"', "tool");
  /**
   * Decoded images by the file's hash, since samples of a group show the same image. Each lives as long as one of its
   * `users`.
   */
  private readonly pictures = new Map<string, { picture: Promise<Picture>; users: Set<string> }>();
  private readonly options: z.infer<typeof configSchema>;

  constructor(config: Record<string, unknown> = {}, schema?: ToolSchema) {
    super(schema ?? defineToolSchema("image_zoom_in_tool", "Zooms in on a region of the image.", inputSchema), config);
    this.options = readConfig(configSchema, config, "ImageZoomTool");
  }

  override async create(instanceId: string, { createKwargs = {}, images }: CreateOptions = {}) {
    if (!images) {
      throw new ToolError("cannot read images", {
        code: "tool/no-images",
        subject: `tool "${this.name}"`,
        expected: "a policy that takes images",
        received: "a policy that takes only text",
        remedy: "give its projector: model.mmproj",
      });
    }
    const { image: wanted = null } = createKwargs;
    this.instances.start(instanceId, { image: wanted === null ? null : await chooseImage(wanted, images), images });
    return { instanceId };
  }

  async execute(instanceId: string, parameters: Record<string, unknown>): Promise<ToolResult> {
    const { image: chosen, images } = this.instances.get(instanceId);
    const image = chosen ?? (await chooseImage(0, images));
    const { bbox_2d: given } = parameters;
    const box = this.findRegion(given, image);
    if (typeof box === "string") {
      const text = `error: the region ${preview(given)} ${box}`;
      return { response: { text }, reward: wrongBox, metrics: { zoomed: 0 } };
    }
    const region = cropPicture(await this.decode(image, instanceId), box);
    const bytes = encodePng(this.scale(region));
    const text = `The region ${JSON.stringify(given)} of the image${describeLabel(parameters.label)}.`;
    return { response: { text, image: [{ bytes }] }, reward: 0, metrics: { zoomed: 1 } };
  }

  override async release(instanceId: string): Promise<void> {
    if (!this.instances.has(instanceId)) return;
    this.instances.end(instanceId);
    for (const [hash, { users }] of this.pictures) {
      users.delete(instanceId);
      if (users.size === 0) this.pictures.delete(hash);
    }
  }

  /** Whole pixels of the image, or a description of the mistake in the box. */
  private findRegion(given: unknown, { width, height }: LoadedImage): PixelBox | string {
    const { coordinates, min_size } = this.options;
    const numbers = Array.isArray(given) ? given.map(Number) : [];
    if (numbers.length !== 4 || !numbers.every(Number.isFinite)) return "is not a list of four numbers";
    const [across, down] = coordinates === "pixels" ? [1, 1] : [width / 1000, height / 1000];
    const [left, right] = [numbers[0]! * across, numbers[2]! * across].map((x) => clamp(x, 0, width)) as Pair;
    const [top, bottom] = [numbers[1]! * down, numbers[3]! * down].map((y) => clamp(y, 0, height)) as Pair;
    const size = { x: right - left, y: bottom - top };
    const range =
      coordinates === "pixels" ? `x from 0 to ${width} and y from 0 to ${height}` : "numbers from 0 to 1000";
    if (!(size.x > 0 && size.y > 0)) return `is empty: expected x1 < x2 and y1 < y2, with ${range}`;
    const aspect = Math.max(size.x / size.y, size.y / size.x);
    if (aspect > maxAspect) return `is too narrow: one side is more than ${maxAspect} times the other`;
    const wanted = Math.max(1, min_size / Math.min(size.x, size.y));
    const growth = Math.min(wanted, width / size.x, height / size.y);
    const [x1, x2] = growSide(left, right, growth, width);
    const [y1, y2] = growSide(top, bottom, growth, height);
    if (Math.min(x2 - x1, y2 - y1) >= min_size) return { left: x1, top: y1, right: x2, bottom: y2 };
    return `is too small: expected sides of at least ${min_size} pixels, and the image has ${width} x ${height}`;
  }

  private decode(image: LoadedImage, instanceId: string): Promise<Picture> {
    const { images } = this.instances.get(instanceId);
    const known = this.pictures.get(image.hash) ?? { picture: images.decode(image), users: new Set<string>() };
    this.pictures.set(image.hash, known);
    known.users.add(instanceId);
    return known.picture;
  }

  private scale(region: Picture): Picture {
    const { scale, max_pixels } = this.options;
    const { width, height } = region;
    const factor = Math.min(scale, Math.sqrt(max_pixels / (width * height)));
    if (factor === 1) return region;
    const measure = (side: number) => Math.max(1, Math.floor(side * factor));
    return scalePicture(region, measure(width), measure(height));
  }
}

type Pair = [number, number];

async function chooseImage(wanted: unknown, images: ToolImages): Promise<LoadedImage> {
  const subject = "create_kwargs.image of ImageZoomTool";
  const expected = "an image's bytes, path or data address, or the index of an image of the prompt";
  if (typeof wanted === "number") {
    const image = images.prompt[wanted];
    if (image) return image;
    const count = images.prompt.length;
    const received = `${wanted}, and the prompt has ${count === 1 ? "1 image" : `${count} images`}`;
    throw new ToolError("is not in the prompt", { code: "tool/no-image", subject, expected, received });
  }
  const source = toImageSource(wanted, { strings: "path" });
  if (source) return images.load(source);
  const received = preview(wanted);
  throw new ToolError("is no image", { code: "tool/no-image", subject, expected, received });
}

/** A side in whole pixels: grown around its middle by `growth`, then moved into 0 to `limit`. */
function growSide(from: number, to: number, growth: number, limit: number): Pair {
  if (growth <= 1) return [Math.floor(from), Math.ceil(to)];
  const length = Math.min(limit, (to - from) * growth);
  const start = clamp((from + to - length) / 2, 0, limit - length);
  return [Math.floor(start), Math.min(limit, Math.ceil(start + length))];
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, value));
}

function describeLabel(label: unknown): string {
  return typeof label === "string" && label !== "" ? ` with ${label}` : "";
}
