// `cria/config`: files of `cria train` and `cria sft`, and what may stand in them.

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
