import { defineCommand } from "citty";

import { docsFolder } from "./assets/docs.js";
import { version } from "./assets/version.js";
import { commands, notes } from "./commands/all-commands.js";
import { runProgram } from "./commands/run-program.js";

const main = defineCommand({
  meta: {
    name: "cria",
    version,
    description: `Raise your own llama: multi-turn, tool-using reinforcement learning for llama.cpp models.

  See it work (npm install cria, and npx before each command; in a checkout too)
    cria chat                                        talk to the embedded policy, which has a calculator
    cria demo                                        train the embedded policy; a few minutes on a laptop
    cria doctor config.yaml                          check this machine, and whether the config fits into memory
    cria check-model model.gguf                      check a model on this machine: gradients, template, speed

  Make an environment
    npm create cria my-env                           a new environment: tool, interaction, config, data, test; or, where
    cria init my-env                                 cria is installed. Also from what you have, and they go together:
    cria init my-env --model my.gguf                   lengths and tool format that fit a model
    cria init my-env --from-mcp "npx -y server"        the tools of an MCP server, rows and a reward to begin with
    cria init my-env --from-ai-sdk ./agent.ts          tools of the AI SDK
    cria check-env my-env/tool.ts#myTool             a scripted model tries a tool or interaction, and lists problems
    cria data gsm8k --out <folder>                   GSM8K from the hub as Parquet, ready to train on
    cria rollout my-env/config.yaml                  sample conversations without training, as JSONL
    cria rollout my-env/config.yaml --keep 'reward>=1' --as messages   keep the good ones, for cria sft

  Train
    cria sft config.yaml                             teach by example first: conversations in, a GGUF out
    cria train config.yaml                           train your agent: a GGUF, tools, rows, a reward
    cria train config.yaml data.train_batch_size=8   any key of the config, set from the command line
    cria train config.yaml actor_rollout_ref.model.path=hf:Qwen/Qwen3-0.6B-GGUF:Q8_0   a model of the hub, downloaded once
    cria config trainer                              explain the keys of a section, or one key; none: all keys
    cria config --from-verl run.sh > config.yaml     convert a script or config of verl; list keys left out, and why
    cria worker --bus nats://host:4222               help on another machine: cria train config.yaml --bus nats://host:4222
    (after Ctrl-C, a crash or a power cut, the same command resumes from the newest checkpoint)
    cria show <run folder> --step 20 --worst 5       print conversations: sampled text, calls, errors, parts of rewards
    cria show <run folder> --filter 'reward<1 && tool_errors>0'
    cria view                                        look at runs in the browser: curves, groups, conversations, tokens, live
    cria coach <run folder>                          list problems of a run, with evidence and changes to make
    cria watch <run folder>                          full-screen view during training: curves, groups, a conversation
    cria workers --bus nats://host:4222              list the machines that share a training's work
    cria runs                                        all runs; also compare A B, resume RUN, remove RUN
    cria rescore <run folder> --reward ./r.ts#score   score its conversations with another reward, as a new run
    cria replay <run folder> --step 20 --trajectory 3   repeat a conversation, bit for bit; --edit 57=+ changes a token

  Use the trained model
    cria chat <run folder>                           talk to it, tools included; also <model.gguf> or <adapter.gguf>
    cria serve --run <run folder>                    an endpoint for clients of OpenAI and Anthropic; --model, --follow
    cria eval config.yaml --checkpoint <run folder>  held-out success of a checkpoint, --adapter or --model
    cria export --run <run folder> --adapter a.gguf  for stock llama.cpp: the LoRA adapter,
    cria export --run <run folder> --merged m.gguf --quantize Q8_0   or the whole model

Every run leaves config.json, metrics.jsonl, rollouts/<step>.jsonl, checkpoints and the trained weights in
runs/<project>/<experiment>. Every command takes --json (the result alone, on stdout) and --help. The exit code is 0 when
done, 1 after an error, 2 when there is no such command or option, 128 + its number after a signal (130 after Ctrl-C):
training saves what is done first.${
      docsFolder === undefined
        ? ""
        : `

Pages about all of it: ${docsFolder} (start.md, commands.md, config.md, coach.md, ...)`
    }
`,
  },
  subCommands: commands,
});

await runProgram(main, notes);
// A tool that was checked may have left a timer or a socket, which would keep the process alive for ever.
if (process.argv[2] === "check-env") setTimeout(() => process.exit(), 500).unref();
