/** Architectures that can be trained, as GGUF files name them. The addon has the same list (`native/src/architecture.cc`). */
export const trainableArchitectures: readonly string[] = ["llama", "qwen2", "qwen3", "qwen2vl", "qwen3vl"];
