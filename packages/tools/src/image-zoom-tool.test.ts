import { encodePng, type ImageSource, type LoadedImage, loadImage, type Picture } from "@cria/core";
import { readPng } from "@cria/core/testing";
import { describe, expect, it } from "vitest";
import { createTools, findArgumentError, ImageZoomTool, type ToolImages } from "./index.js";

/** A picture whose pixels' colours encode their places. */
function makePicture(width: number, height: number): Picture {
  const rgb = new Uint8Array(width * height * 3);
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) rgb.set([x, y, 9], (y * width + x) * 3);
  return { width, height, rgb };
}

/** Images of a conversation, as a loop gives them to a tool. */
async function openImages(...sizes: [width: number, height: number][]) {
  const prompt = await Promise.all(sizes.map((size) => loadImage({ bytes: encodePng(makePicture(...size)) })));
  const decoded: LoadedImage[] = [];
  const loaded: ImageSource[] = [];
  const images: ToolImages = {
    prompt,
    load: (source) => {
      loaded.push(source);
      return loadImage(source);
    },
    decode: async (image) => {
      decoded.push(image);
      return readPng(image.bytes);
    },
  };
  return { images, decoded, loaded };
}

async function open(config: Record<string, unknown> = {}, ...sizes: [width: number, height: number][]) {
  const tool = new ImageZoomTool(config);
  const opened = await openImages(...(sizes.length > 0 ? sizes : [[100, 80] as [number, number]]));
  await tool.create("i", { images: opened.images });
  const zoom = async (...bbox_2d: number[]) => {
    const { response, reward, metrics } = await tool.execute("i", { bbox_2d });
    const [image] = (response.image ?? []) as { bytes: Uint8Array }[];
    return { text: response.text, picture: image && readPng(image.bytes), reward, metrics };
  };
  return { tool, zoom, ...opened };
}

/** The corner and the size of a region. */
function placeOf(picture: Picture | undefined) {
  return picture && [picture.rgb[0], picture.rgb[1], picture.width, picture.height];
}

describe("the zoom tool", () => {
  it("answers with the region that its box names, by verl's name and arguments", async () => {
    const tools = await createTools([{ class_name: "verl.tools.image_zoom_in_tool.ImageZoomInTool" }], ".");
    const tool = tools.get("image_zoom_in_tool")!;
    expect(tool).toBeInstanceOf(ImageZoomTool);
    expect(findArgumentError(tool.schema, { bbox_2d: [1, 2, 3.5, 4], label: "a cat" })).toBeNull();
    expect(findArgumentError(tool.schema, { bbox_2d: [1, 2, 3] })).toMatch(/bbox_2d/);
    expect(findArgumentError(tool.schema, { label: "a cat" })).toMatch(/missing argument "bbox_2d"/);
    await tool.create("i", { images: (await openImages([100, 80])).images });
    const { response, ...rest } = await tool.execute("i", { bbox_2d: [10, 20, 50, 60], label: "a cat" });
    expect(response.text).toBe("The region [10,20,50,60] of the image with a cat.");
    const [{ bytes }] = response.image as [{ bytes: Uint8Array }];
    const whole = makePicture(100, 80);
    const { width, height, rgb } = readPng(bytes);
    expect([width, height]).toEqual([40, 40]);
    for (const [x, y] of [
      [0, 0],
      [39, 0],
      [17, 39],
    ] as const)
      expect([...rgb.subarray((y * 40 + x) * 3).subarray(0, 3)]).toEqual([
        ...whole.rgb.subarray(((y + 20) * 100 + x + 10) * 3).subarray(0, 3),
      ]);
    expect(rest).toEqual({ reward: 0, metrics: { zoomed: 1 } });
  });

  it("keeps the box inside of the image, and lets a small one grow around its middle", async () => {
    const { zoom } = await open();
    expect(placeOf((await zoom(-50, -5, 40, 40)).picture)).toEqual([0, 0, 40, 40]);
    expect(placeOf((await zoom(60, 30, 4000, 4000)).picture)).toEqual([60, 30, 40, 50]);
    expect(placeOf((await zoom(10.6, 10.2, 50.1, 50.9)).picture)).toEqual([10, 10, 41, 41]);
    expect(placeOf((await zoom(50, 40, 54, 44)).picture)).toEqual([38, 28, 28, 28]);
    // A box twice as wide as high keeps its shape, and moves inside.
    expect(placeOf((await zoom(0, 0, 20, 10)).picture)).toEqual([0, 0, 56, 28]);
    expect(placeOf((await zoom(98, 78, 100, 80)).picture)).toEqual([72, 52, 28, 28]);
  });

  it("names the problem of a box, at a small cost", async () => {
    const { zoom } = await open();
    expect(await zoom(50, 20, 10, 60)).toEqual({
      text: "error: the region [50,20,10,60] is empty: expected x1 < x2 and y1 < y2, with x from 0 to 100 and y from 0 to 80",
      picture: undefined,
      reward: -0.05,
      metrics: { zoomed: 0 },
    });
    expect((await zoom(200, 10, 300, 50)).text).toMatch(/is empty/);
    expect((await zoom(1, 2, 3)).text).toMatch(/is not a list of four numbers/);
    expect((await zoom(0, 0, Number.NaN, 3)).text).toMatch(/is not a list of four numbers/);
    expect((await zoom(0, 10, 100, 10.5)).text).toMatch(/one side is more than 100 times the other/);
    const { zoom: zoomSmall } = await open({}, [20, 90]);
    expect((await zoomSmall(0, 0, 20, 90)).text).toMatch(/sides of at least 28 pixels, and the image has 20 x 90/);
  });

  it("enlarges, scales down, and counts in thousandths as its config says", async () => {
    const big = (await open({ scale: 2 })).zoom;
    expect(placeOf((await big(0, 0, 30, 40)).picture)).toEqual([0, 0, 60, 80]);
    const small = (await open({ max_pixels: 200, scale: 3 })).zoom;
    expect(placeOf((await small(0, 0, 80, 40)).picture)).toEqual([2, 2, 20, 10]);
    const relative = (await open({ coordinates: "thousandths", min_size: 1 })).zoom;
    expect(placeOf((await relative(500, 250, 1000, 1000)).picture)).toEqual([50, 20, 50, 60]);
    expect((await relative(1000, 0, 1200, 9)).text).toMatch(/with numbers from 0 to 1000/);
    expect(() => new ImageZoomTool({ min_size: 0 })).toThrow(
      expect.objectContaining({ code: "config/bad-value", subject: "config of ImageZoomTool.min_size", received: "0" }),
    );
  });

  it("decodes a file once for all conversations that show it, and forgets it after the last", async () => {
    const { tool, zoom, images, decoded } = await open();
    await tool.create("j", { images });
    await Promise.all([zoom(0, 0, 40, 40), tool.execute("j", { bbox_2d: [0, 0, 40, 40] }), zoom(0, 0, 50, 50)]);
    expect(decoded).toHaveLength(1);
    await tool.release("i");
    await tool.execute("j", { bbox_2d: [0, 0, 40, 40] });
    expect(decoded).toHaveLength(1);
    await tool.release("j");
    await tool.release("j");
    await tool.create("k", { images });
    await tool.execute("k", { bbox_2d: [0, 0, 40, 40] });
    expect(decoded).toHaveLength(2);
    await expect(tool.execute("j", { bbox_2d: [0, 0, 40, 40] })).rejects.toMatchObject({
      code: "tool/unknown-instance",
      subject: 'instance j of tool "image_zoom_in_tool"',
    });
  });

  it("takes the image that the row names: its bytes, its path, or one of the prompt", async () => {
    const { images, loaded } = await openImages([100, 80], [60, 50]);
    const tool = new ImageZoomTool();
    const size = async (createKwargs: Record<string, unknown>) => {
      await tool.create("i", { createKwargs, images });
      const { response } = await tool.execute("i", { bbox_2d: [0, 0, 9999, 9999] });
      const { width, height } = readPng((response.image as [{ bytes: Uint8Array }])[0].bytes);
      return [width, height];
    };
    expect(await size({ image: 1 })).toEqual([60, 50]);
    expect(await size({ image: { bytes: encodePng(makePicture(40, 41)) } })).toEqual([40, 41]);
    await expect(size({ image: "cats/1.png" })).rejects.toMatchObject({ code: "data/image-refused", subject: "image" });
    expect(loaded.at(-1)).toEqual({ path: "cats/1.png" });
    await expect(size({ image: 2 })).rejects.toMatchObject({
      code: "tool/no-image",
      subject: "create_kwargs.image of ImageZoomTool",
      received: "2, and the prompt has 2 images",
    });
    await expect(size({ image: [] })).rejects.toMatchObject({
      code: "tool/no-image",
      subject: "create_kwargs.image of ImageZoomTool",
      received: "[]",
    });
    await expect(tool.create("j")).rejects.toMatchObject({
      code: "tool/no-images",
      subject: 'tool "image_zoom_in_tool"',
      remedy: expect.stringContaining("model.mmproj"),
    });
  });
});
