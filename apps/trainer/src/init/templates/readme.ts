export function makeReadme(name: string): string {
  return `# ${name}

An environment for [Cria](https://www.npmjs.com/package/cria): word problems, a calculator, and somebody who says when an
answer is wrong. It runs as it is on the embedded policy; replace it piece by piece with your own.

| file | what it is |
| --- | --- |
| \`tool.ts\`, \`tools.yaml\` | what the model can do |
| \`interaction.ts\`, \`interaction.yaml\` | who answers the model, and judges |
| \`data/*.jsonl\` | the problems: prompt, ground truth, data source |
| \`config.yaml\` | model, rollouts, training |
| \`environment.test.mjs\` | what must stay true |

\`\`\`sh
cria check-env tools.yaml          # a scripted model tries the tool: what is wrong with it?
cria check-env interaction.yaml    # and the interaction
cria rollout config.yaml --val     # conversations of the policy, as JSONL
cria train config.yaml             # training; a few minutes on a laptop
node --test                        # all of it
\`\`\`

Rows whose \`data_source\` is \`${name}\` talk to the interaction of that name. A conversation's reward is the interaction's
\`calculateScore\`; to judge in another way, set \`custom_reward_function.path\`. With another model, set
\`actor_rollout_ref.model.path\` and the lengths.
`;
}
