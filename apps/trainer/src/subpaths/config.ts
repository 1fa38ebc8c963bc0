// `cria/config`: files of `cria train` and `cria sft`, and their keys.

export {
  fromConfig,
  type LoadedConfig,
  loadConfig,
  type PartialConfig,
  type SftConfig,
  sftConfigSchema,
  type TrainConfig,
  toConfig,
  trainConfigSchema,
} from "@cria/trainer";
