import type { HubFile, Listing } from "./hub-cache.js";
import { type FetchOptions, HubRepository } from "./hub-repository.js";
import { isAddress, parseAddress } from "./parse-address.js";

export type ResolveModelOptions = FetchOptions;

const FORM = "hf:<owner>/<model>[:<quantisation>][@<revision>], or hf:<owner>/<model>/<file>.gguf[@<revision>]";

/** A kind of GGUF file in a repository. */
interface Kind {
  /** Name of the kind, for errors. */
  file: string;
  isOne: (stem: string) => boolean;
  /** Default quantisation, for an address without one. */
  usual: string;
}

/** GGUF files for llama.cpp. */
const models: Kind = { file: "GGUF file", isOne: (stem) => !isNamed("mmproj|imatrix", stem), usual: "Q4_K_M" };
const projectors: Kind = { file: "GGUF file of a projector", isOne: (stem) => isNamed("mmproj", stem), usual: "F16" };

function isNamed(pattern: string, stem: string): boolean {
  return new RegExp(`(^|[-._/])(${pattern})`, "i").test(stem);
}

/** A GGUF model of a repository: one file, or parts that llama.cpp loads through the first. */
interface GgufModel {
  /** Path without extension and without the number of the part. */
  stem: string;
  parts: HubFile[];
}

/**
 * The path of a model's GGUF. For an address such as `hf:Qwen/Qwen3-0.6B-GGUF:Q8_0` it is the file in the cache,
 * downloaded if it is missing; a path is returned unchanged. For a model in parts it is the first one, with the others
 * in the same folder.
 * @throws HubError with the reason: an address of another form, a repository or quantisation that does not exist (with
 *   those that do), no permission, no network, nothing cached while offline, a full disk, a damaged download.
 */
export function resolveModel(address: string, options: ResolveModelOptions = {}): Promise<string> {
  return resolveFile(address, models, options);
}

/**
 * The same for the projector that lets a model see images: the repository's file whose name begins with mmproj. If
 * there are several, it is F16 unless the address names another quantisation, or the file itself.
 * @throws HubError as `resolveModel` does.
 */
export function resolveProjector(address: string, options: ResolveModelOptions = {}): Promise<string> {
  return resolveFile(address, projectors, options);
}

async function resolveFile(address: string, kind: Kind, options: ResolveModelOptions): Promise<string> {
  if (!isAddress(address)) return address;
  const { repository: name, quantization, parts, revision } = parseAddress(address, FORM);
  const repository = new HubRepository("model", name, revision ?? "main", options);
  const listing = await repository.list();
  const model = chooseModel(repository, listing, kind, quantization, parts.join("/"));
  const [first] = await repository.fetch(listing, model.parts);
  return first!;
}

function chooseModel(
  repository: HubRepository,
  { files }: Listing,
  kind: Kind,
  quantization: string | null,
  path: string,
): GgufModel {
  const models = groupParts(files, kind);
  const refuse = (summary: string, expected: string, received: string, remedy?: string) =>
    repository.fail(summary, { expected, received, remedy });
  if (models.length === 0) {
    const received = files.map((file) => file.path).slice(0, 8);
    const remedy = `look for a repository with GGUF files, often named ${repository.name}-GGUF`;
    throw refuse(`has no ${kind.file}`, "a file that ends with .gguf", received.join(", ") || "no files", remedy);
  }
  if (path !== "") {
    const found = models.find((model) => model.parts.some((part) => part.path === path));
    if (found) return found;
    const all = models.map((model) => model.parts[0]!.path);
    throw refuse(`has no file ${path}`, all.join(", "), path, "name one of these files");
  }
  const names = models.map(({ stem }) => readQuantization(stem));
  const wanted = (quantization ?? (models.length > 1 ? kind.usual : null))?.toUpperCase();
  if (wanted === undefined) return models[0]!;
  const found = models
    .filter(({ stem }, i) => names[i] === wanted || new RegExp(`(^|[-._/])${escapePattern(wanted)}$`, "i").test(stem))
    .sort((a, b) => a.stem.length - b.stem.length);
  if (found[0]) return found[0];
  throw refuse(
    quantization === null ? "has several quantisations" : `has no quantisation ${quantization}`,
    `one of ${[...new Set(names.map((known, i) => known ?? models[i]!.parts[0]!.path))].join(", ")}`,
    quantization ?? "none",
    `name one of them: hf:${repository.name}:${names.find((known) => known !== null) ?? "Q8_0"}`,
  );
}

/** A repository's models, or its projectors. */
function groupParts(files: readonly HubFile[], { isOne }: Kind): GgufModel[] {
  const models = new Map<string, GgufModel>();
  for (const file of [...files].sort((a, b) => (a.path < b.path ? -1 : 1))) {
    const found = /^(?<stem>.*?)(-\d{5}-of-\d{5})?\.gguf$/i.exec(file.path);
    const stem = found?.groups?.stem;
    if (stem === undefined || !isOne(stem)) continue;
    const model = models.get(stem) ?? { stem, parts: [] };
    models.set(stem, { stem, parts: [...model.parts, file] });
  }
  return [...models.values()];
}

/** The quantisation at the end of a file's name, else the last one in it; null: none. */
function readQuantization(stem: string): string | null {
  const names = stem.matchAll(/(?<=^|[-._/])(i?q\d(_[a-z0-9]+)*|tq\d_\d|bf16|f16|fp16|f32|mxfp4(_moe)?)(?=$|[-./])/gi);
  return [...names].at(-1)?.[0].toUpperCase() ?? null;
}

function escapePattern(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
