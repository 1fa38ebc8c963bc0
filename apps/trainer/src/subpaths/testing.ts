// `cria/testing`: tools and rewards of a task, tested without a model.

export {
  callTool,
  type Played,
  type PlayedCall,
  type PlayOptions,
  playTask,
  type Script,
  type ScriptedAnswer,
  type ScriptedTurn,
} from "@cria/trainer/testing";
