// `cria/serve`: OpenAI's and Anthropic's endpoints over a model or a policy.

export { createFetch } from "@cria/serve";
