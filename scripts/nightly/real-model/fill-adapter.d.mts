import type { LlamaModel } from "../../../packages/engine/src/index.js";

export declare function fillAdapter(model: LlamaModel): Promise<void>;
