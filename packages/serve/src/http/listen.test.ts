import { expect, it } from "vitest";
import { type ListenOptions, listen } from "./listen.js";

it("misspelt options are refused, also those of the limits", async () => {
  const cases: [object, string][] = [
    [{ prot: 0 }, 'perhaps "port"'],
    [{ limits: { runing: 1 } }, 'perhaps "limits.running"'],
  ];
  for (const [options, expected] of cases)
    await expect(listen(options as ListenOptions)).rejects.toMatchObject({ code: "config/unknown-key", expected });
});
