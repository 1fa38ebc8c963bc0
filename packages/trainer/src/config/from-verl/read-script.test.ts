// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are shell scripts
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { readScript } from "./read-script.js";

/** Overrides that a script passes, each with what is not known of it. */
function read(script: string, args: string[] = [], env: Record<string, string> = {}) {
  const { overrides, notes } = readScript(script, "run.sh", { args, env });
  return { texts: overrides.map(({ text }) => text), unknown: overrides.map(({ unknown }) => unknown), notes };
}

const folder = mkdtempSync(join(tmpdir(), "cria-shell-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The overrides that a real shell passes to `python3`; null where there is no bash. */
function runBash(script: string): string[] | null {
  if (!existsSync("/bin/bash")) return null;
  const python = join(folder, "python3");
  writeFileSync(python, `#!/bin/bash\nprintf '%s\\0' "$@" > ${join(folder, "args")}\n`);
  chmodSync(python, 0o755);
  const env = { PATH: `${folder}:/usr/bin:/bin` };
  rmSync(join(folder, "args"), { force: true });
  spawnSync("/bin/bash", ["-c", script.replaceAll("\r\n", "\n")], { cwd: folder, env });
  return readFileSync(join(folder, "args"), "utf8").split("\0").slice(2, -1);
}

const train = "python3 -m verl.trainer.main_ppo";

describe("words", () => {
  it.each([
    ["a line continuation", `${train} a.b=1 \\\n  c.d=2 \\\n  e.f=3`, ["a.b=1", "c.d=2", "e.f=3"]],
    ["a continuation inside a word", `${train} a.b=1\\\n2`, ["a.b=12"]],
    ["Windows' line ends", `${train} \\\r\n  a.b=1\r\n`, ["a.b=1"]],
    ["single quotes", `${train} a.b='["x","$y"]'`, ['a.b=["x","$y"]']],
    ["double quotes", `${train} a.b="['x', \\"y\\", \\$z]"`, [`a.b=['x', "y", $z]`]],
    ["quotes around the whole word", `${train} "a.b=1 2" 'c.d=3 4'`, ["a.b=1 2", "c.d=3 4"]],
    ["an escaped blank", `${train} a.b=1\\ 2`, ["a.b=1 2"]],
    ["$'...'", `${train} a.b=$'x\\ny'`, ["a.b=x\ny"]],
    ["+key, ++key and ~key", `${train} +a.b=1 ++c.d=2 ~e.f`, ["+a.b=1", "++c.d=2", "~e.f"]],
    ["a comment", `# ${train} a.b=0\n${train} a.b=1 # c.d=2`, ["a.b=1"]],
    ["# inside a word", `${train} a.b=x#y`, ["a.b=x#y"]],
    ["redirections and a pipe", `${train} a.b=1 > log.txt 2>&1 | tee x.y=3`, ["a.b=1"]],
    ["set -x and other commands", `set -xeuo pipefail\nulimit -c 0\n${train} a.b=1`, ["a.b=1"]],
    ["variables of the command", `V=1 W=x.y=2 ${train} a.b=1`, ["a.b=1"]],
    ["a here-document", `cat <<'EOF' > x\n${train} c.d=2\nEOF\n${train} a.b=1`, ["a.b=1"]],
    ["an && list", `cd . && ${train} a.b=1`, ["a.b=1"]],
    ["echo", `echo "${train}" a.b=0\n${train} a.b=1`, ["a.b=1"]],
  ])("%s", (_, script, expected) => {
    const { texts, unknown } = read(script);
    expect(texts).toEqual(expected);
    expect(unknown.flat()).toEqual([]);
    expect(runBash(script) ?? expected).toEqual(expected);
  });
});

describe("variables", () => {
  it.each([
    ["$VAR", `X=1\n${train} a.b=$X`, ["a.b=1"]],
    ["${VAR}", `X=1\n${train} a.b=${"${X}"}2`, ["a.b=12"]],
    ["export", `export X=1 Y=2\n${train} a.b=$X$Y`, ["a.b=12"]],
    ["in double quotes", `X="1 2"\n${train} "a.b=$X"`, ["a.b=1 2"]],
    ["not in single quotes", `X=1\n${train} 'a.b=$X'`, ["a.b=$X"]],
    ["of another one", `X=1\nY="[$X]"\n${train} a.b="$Y"`, ["a.b=[1]"]],
    ["${VAR:-x}, not set", `${train} a.b=${"${X:-7}"}`, ["a.b=7"]],
    ["${VAR:-x}, empty", `X=\n${train} a.b=${"${X:-7}"}`, ["a.b=7"]],
    ["${VAR:-x}, set", `X=1\n${train} a.b=${"${X:-7}"}`, ["a.b=1"]],
    ["${VAR-x}, empty", `X=\n${train} a.b=${"${X-7}"}`, ["a.b="]],
    ["${VAR:-${OTHER}}", `Y=2\n${train} a.b=${"${X:-${Y}}"}`, ["a.b=2"]],
    ['${VAR:-"a b"}', `X=${'${X:-"p q"}'}\n${train} "a.b=$X"`, ["a.b=p q"]],
    ["${VAR:=x}", `: ${"${X:=7}"}\n${train} a.b=$X`, ["a.b=7"]],
    ["${VAR:+x}", `X=1\n${train} a.b=${"${X:+7}"} c.d=${"${Y:+8}"}`, ["a.b=7", "c.d="]],
    ["an assignment to itself", `X=1\nX=${"${X:-2}"}\n${train} a.b=$X`, ["a.b=1"]],
    ["+=", `X=1\nX+=2\n${train} a.b=$X`, ["a.b=12"]],
    ["words of an unquoted one", `X="a.b=1 c.d=2"\n${train} $X`, ["a.b=1", "c.d=2"]],
    ["words of one on several lines", `X="\n  a.b=1 \\\n  c.d='2'"\n${train} $X`, ["a.b=1", "c.d='2'"]],
    ["$(((...)))", `X=$(((512*4)))\n${train} a.b=$X c.d=$((X / ( 32 * 2)))`, ["a.b=2048", "c.d=32"]],
    ["$((...))", `X=$((1024 * 2))\n${train} a.b=$((X + ${"${X}"} / 2 - (3 % 2)))`, ["a.b=3071"]],
  ])("%s", (_, script, expected) => {
    const { texts, unknown } = read(script);
    expect(texts).toEqual(expected);
    expect(unknown.flat()).toEqual([]);
    expect(runBash(script) ?? expected).toEqual(expected);
  });

  it("from the process are taken, and reported", () => {
    const { texts, notes } = read(`${train} a.b=$HOME/x`, [], { HOME: "/home/me" });
    expect(texts).toEqual(["a.b=/home/me/x"]);
    expect(notes).toEqual(["from environment variables: HOME"]);
  });

  it.each([
    ["that is not set", `${train} a.b=$X`, "a.b=$X", "$X is not set"],
    ["${VAR:?message}", `${train} a.b=${"${X:?name a model}"}`, "a.b=$X", "$X is not set: name a model"],
    ["of a variable that is not set", `Y=/p/$X\n${train} a.b=$Y`, "a.b=/p/$X", "$X is not set"],
    ["$(command)", `X="$(date +%s) $(pwd)"\n${train} a.b="$X"`, "a.b=$(date +%s) $(pwd)", "$(date +%s) is not run"],
    ["`command`", `${train} a.b=\`touch /tmp/x\``, "a.b=`touch /tmp/x`", "`touch /tmp/x` is not run"],
    ["${VAR%pattern}", `X=a.sh\n${train} a.b=${"${X%.sh}"}`, `a.b=${"${X%.sh}"}`, `${"${X%.sh}"} is not run`],
    ["$((...)) of no number", `X=y\n${train} a.b=$((X + 1))`, "a.b=$((X + 1))", "$((X + 1)) cannot be computed"],
    ["$1", `${train} a.b=$1`, "a.b=$1", "$1 is not set"],
  ])("%s is reported", (_, script, text, reason) => {
    const { texts, unknown } = read(script);
    expect(texts).toEqual([text]);
    expect(unknown[0]![0]).toBe(reason);
  });
});

describe("arrays", () => {
  const script = (call: string) => `ARGS=(\n  a.b=1  # one\n  # c.d=0\n  "c.d=2 3"\n)\nARGS+=(e.f=4)\n${train} ${call}`;

  it('"${ARGS[@]}" is as many words as it has', () => {
    expect(read(script('"${ARGS[@]}" g.h=5')).texts).toEqual(["a.b=1", "c.d=2 3", "e.f=4", "g.h=5"]);
  });

  it("${ARGS[@]} is cut at blanks", () => {
    expect(read(script("${ARGS[@]}")).texts).toEqual(["a.b=1", "c.d=2", "e.f=4"]);
  });

  it("${ARGS[0]} is one of them, as $ARGS", () => {
    expect(read(script('"${ARGS[1]}" $ARGS')).texts).toEqual(["c.d=2 3", "a.b=1"]);
  });

  it("may hold the command, or nothing", () => {
    expect(read(`NONE=()\nCMD=(${train} a.b=1)\n"\${CMD[@]}" "\${NONE[@]}" c.d=2`).texts).toEqual(["a.b=1", "c.d=2"]);
  });
});

describe("arguments", () => {
  it('"$@" stands for the overrides beside the script', () => {
    const script = `${train} a.b=1 "$@" c.d=2`;
    expect(read(script, ["e.f=3 4"]).texts).toEqual(["a.b=1", "e.f=3 4", "c.d=2"]);
    expect(read(script).texts).toEqual(["a.b=1", "c.d=2"]);
  });

  it("come last where the script does not say $@", () => {
    expect(read(`${train} a.b=1`, ["a.b=2"]).texts).toEqual(["a.b=1", "a.b=2"]);
  });

  it("of Hydra that name another file are found", () => {
    const options = (call: string) => {
      const { configName, configPath, program } = readScript(`${train} ${call} a.b=1`, "run.sh");
      return [program, configName?.text, configPath?.text, configPath?.unknown];
    };
    const main = "verl.trainer.main_ppo";
    expect(options("--config-path=/x --config-name='y'")).toEqual([main, "y", "/x", []]);
    const submitted = `ray job submit --working-dir . -- python3 -X faulthandler -m ${main} a.b=1`;
    expect(readScript(submitted, "run.sh").program).toBe(main);
    expect(options("-cn y --config-dir z")).toEqual([main, "y", "z", []]);
    expect(options('--config-path="$(pwd)/x"')).toEqual([main, undefined, "$(pwd)/x", ["$(pwd) is not run"]]);
    expect(options("")).toEqual([main, undefined, undefined, undefined]);
  });
});

describe("parts that need a decision", () => {
  it.each([
    ["if", `if [ "$Y" = 1 ]; then\n  X=2\nelse\n  X=3\nfi`, "an if (line 2)"],
    ["for", `for X in 1 2; do echo $X; done`, "a loop (line 1)"],
    ["case", `case $Y in\n  a) X=1 ;;\n  *) X=2 ;;\nesac`, "a case (line 3)"],
    ["&&", `[ -z "$X" ] && X=1`, "a condition (line 1)"],
  ])("%s is not followed, and reported if it matters", (_, head, where) => {
    const line = where.replace("(line 2)", head.startsWith("if") ? "(line 4)" : "(line 2)");
    const alone = read(`${head}\n${train} a.b=$X c.d=1`);
    expect(alone.unknown).toEqual([[`$X is set in ${line}, which is not followed`], []]);
    const before = read(`X=0\n${head}\n${train} a.b=$X`);
    expect(before.texts).toEqual(["a.b=0"]);
    expect(before.notes).toEqual([expect.stringMatching(/^\$X is set in .*; its value before that is taken$/)]);
    expect(read(`${head}\nX=5\n${train} a.b=$X`)).toMatchObject({ texts: ["a.b=5"], notes: [] });
  });

  it("functions are ignored", () => {
    const script = `X=1\nrun() {\n  X=2\n  ${train} a.b=3\n}\nfunction other { X=4; }\n${train} a.b=$X`;
    expect(read(script)).toEqual({
      texts: ["a.b=1"],
      unknown: [[]],
      notes: [expect.stringMatching(/^the command on line 4 is left out/)],
    });
  });

  it("a command inside a loop is taken, and reported", () => {
    const { texts, unknown, notes } = read(`for seed in 1 2; do\n  ${train} a.b=1 c.d=$seed\ndone`);
    expect(texts).toEqual(["a.b=1", "c.d=$seed"]);
    expect(unknown[1]).toEqual(["$seed is set in a loop (line 1), which is not followed"]);
    expect(notes).toEqual(["the command on line 2 stands in an if, a loop or a function"]);
  });
});

describe("scripts without a training", () => {
  it.each(["", "echo a.b=1", "x=1\nls"])("%j", (script) => {
    expect(() => read(script)).toThrow(expect.objectContaining({ code: "config/no-command" }));
  });

  it("of examples are another config", () => {
    expect(() => read("torchrun -m verl.trainer.fsdp_sft_trainer data.train_files=x")).toThrow(
      expect.objectContaining({
        code: "config/not-supported",
        subject: expect.stringContaining("verl.trainer.fsdp_sft_trainer"),
        remedy: expect.stringContaining("cria sft"),
      }),
    );
  });

  it.each([
    "actor_rollout_ref.model.path=/models/my_sft_model",
    "trainer.experiment_name=qwen3-4b.sft.dapo",
    "trainer.project_name=sft",
  ])("are not those that name a model or an experiment: %s", (override) => {
    expect(read(`${train} ${override}`).texts).toEqual([override]);
    expect(read(`cd my_sft_project && python3 /home/my_sft_project/main_ppo.py ${override}`).texts).toEqual([override]);
  });

  it.each([
    "-m verl.trainer.sft_trainer",
    "-m verl.trainer.fsdp_sft_trainer",
    "--nproc_per_node 2 verl/trainer/sft_trainer.py",
    "-m verl.trainer.main_sft",
  ])("are those of %s", (call) => {
    let code: string | undefined;
    try {
      read(`torchrun ${call} data.train_files=x`);
    } catch (error) {
      ({ code } = error as { code?: string });
    }
    expect(code).toBe("config/not-supported");
  });

  it("with errors of syntax end", () => {
    for (const text of ['a.b="x', "a.b='x", "a.b=${x", "a.b=$(x", "X=(1 2", "cat <<EOF\nx"])
      expect(() => readScript(`${train} c.d=1 ${text}`, "run.sh")).not.toThrow();
  });
});
