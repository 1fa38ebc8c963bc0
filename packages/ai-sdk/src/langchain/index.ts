export {
  type CriaCallSettings,
  type CriaChatCallOptions,
  CriaChatModel,
  type CriaChatModelFields,
  chatModel,
} from "./chat-model.js";
