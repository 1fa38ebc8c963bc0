// Writes dist/cria-tiny-vision.mmproj.gguf: the same bytes at each build.
import { join } from "node:path";
import { writeGguf } from "@cria/engine";
import { describeTinyProjector } from "./tiny-projector.js";

await writeGguf(join(import.meta.dirname, "cria-tiny-vision.mmproj.gguf"), describeTinyProjector());
