interface ReadmeParts {
  name: string;
  /** The content of the task, in a sentence or two. */
  story: string;
  /** Files and their descriptions. */
  files: readonly (readonly [string, string])[];
  /** Advice for changes, and the way conversations are judged. */
  ending: string;
}

export function makeReadme({ name, story, files, ending }: ReadmeParts): string {
  return `# ${name}

An environment for [Cria](https://www.npmjs.com/package/cria): ${story}

| file | what it is |
| --- | --- |
${files.map(([file, what]) => `| ${file} | ${what} |`).join("\n")}

\`\`\`sh
npm install            # cria, and TypeScript for the editor; not needed where a folder above has them
npm run check          # a scripted model tries the tools: what is wrong with them?
npm run rollout        # conversations of the policy, as JSONL
npm run train          # training; the same command again goes on from the newest checkpoint
npm run eval           # success of the trained model on data/val.jsonl
npm run export         # the trained adapter, for stock llama.cpp
npm run types          # tsc
npm test               # all of it
\`\`\`

${ending}
`;
}

const common = [
  ["`config.yaml`", "model, rollouts, training"],
  ["`environment.test.mjs`", "checks of the environment"],
] as const;

export function makeTemplateReadme(name: string): string {
  return makeReadme({
    name,
    story: `word problems, a calculator, and somebody who says when an
answer is wrong. It runs as it is; replace it piece by piece with your own.`,
    files: [
      ["`tool.ts`, `tools.yaml`", "the model's tools"],
      ["`interaction.ts`, `interaction.yaml`", "replies to the model, and judges"],
      ["`data/*.jsonl`", "the problems: prompt, ground truth, data source"],
      ...common,
    ],
    ending: `Rows whose \`data_source\` is \`${name}\` talk to the interaction of that name. A conversation's reward is the interaction's
\`score\`; to judge in another way, set \`custom_reward_function.path\`. Another model: \`cria init --model my.gguf\` writes
the lengths, the tool format and the rest that fit it.`,
  });
}

export function makeVisionReadme(name: string): string {
  return makeReadme({
    name,
    story: `pictures of a small coloured square, a tool that zooms
into them, and a reward. It runs as it is; replace it piece by piece with your own.`,
    files: [
      ["`tools.yaml`", "the tool that zooms, and its config"],
      ["`data/*.jsonl`, `data/images`", "the questions: prompt with `<image>`, pictures, ground truth"],
      ["`reward.ts`", "the criteria of a good answer"],
      ...common,
    ],
    ending: `Where a prompt says \`<image>\` the next of the row's \`images\` stands: a path from the file's folder, bytes or base64. The
embedded policy has a random projector and never learned to see: for a task of yours take a model that sees, as
\`cria init --vision --model model.gguf --mmproj mmproj.gguf\`. \`cria view\` shows the pictures of conversations.`,
  });
}

export function makeToolsReadme(name: string, origin: string): string {
  return makeReadme({
    name,
    story: `the tools of ${origin}, rows that ask for
calls of them, and a reward. It runs as it is; what you fill in is the rows and the reward.`,
    files: [
      ["`tools.yaml`", `the tools, and their source`],
      ["`data/*.jsonl`", "FILL IN the tasks: prompt, ground truth, data source"],
      ["`reward.ts`", "FILL IN the criteria of a good answer"],
      ...common,
    ],
    ending: `A row may carry what its tools need (\`extra_info.tools_kwargs\`) and anything that the reward wants to know. Rollouts call
tools for real, many at once: give them a copy of what they may change, and name in tools.yaml only those that may be called.`,
  });
}
