import { setTimeout as sleep } from "node:timers/promises";
import { hashSeed, makeUniform } from "@cria/core";
import { CalculatorTool, type ToolResult } from "@cria/tools";

/** Salt of the delays: with another one each call takes another time. */
const salt = () => process.env.CRIA_DELAYS ?? "";

/** The calculator, whose answers take as long as a service on the net: between `least` and `most` seconds, by the call. */
export class SlowCalculator extends CalculatorTool {
  private calls = 0;

  override async execute(instanceId: string, parameters: Record<string, unknown>): Promise<ToolResult> {
    const { least, most } = this.config as { least: number; most: number };
    const uniform = makeUniform(hashSeed("delay", salt(), String(parameters.expression), this.calls++))();
    await sleep(1000 * (least + uniform * (most - least)));
    return super.execute(instanceId, parameters);
  }
}
