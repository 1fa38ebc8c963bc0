import { expect, it, vi } from "vitest";
import { openTracer } from "./open-tracer.js";

vi.mock("@opentelemetry/api", () => {
  throw new Error("Cannot find package");
});

it("a tracer without the package is an error that names the package to install", async () => {
  await expect(openTracer()).rejects.toMatchObject({
    code: "config/no-tracing",
    subject: expect.stringContaining("@opentelemetry/api"),
    remedy: expect.stringContaining("npm install @opentelemetry/api"),
  });
});
