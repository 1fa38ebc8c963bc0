import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  checkFormat,
  checkTidy,
  FORMATTER,
  isInstalled,
  listChanged,
  listFiles,
  MOST_CHANGED,
  selectUnits,
  TIDY,
  tidyUnit,
} from "../scripts/check-native-style.mjs";

// Checks every file's format, and a few changed units with clang-tidy; scripts/nightly/native-tidy.mjs checks all of
// them. Installed by scripts/install-test-tools.sh; without the tools developers' machines skip this, CI does not.
const folder = mkdtempSync(join(tmpdir(), "cria-style-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function write(name: string, text: string): string {
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
}

/** A test that needs a tool; it is skipped with a message where the tool is missing. */
function itWith(tool: string, title: string, body: () => Promise<void>) {
  const skipped = !process.env.CI && !isInstalled(tool);
  const name = skipped ? `${title}: ${tool} is not installed, see scripts/install-test-tools.sh` : title;
  // Half a minute of two cores at most, and minutes where others want them.
  it.skipIf(skipped)(name, { timeout: 600_000 }, body);
}

describe("the C++ of native/", () => {
  itWith(FORMATTER, "is formatted, every file", async () => {
    const { files, problems } = await checkFormat();
    expect(files).toBeGreaterThan(100);
    expect(problems, "run: node scripts/check-native-style.mjs --write").toEqual([]);
  });

  itWith(TIDY, `has nothing that clang-tidy finds, in at most ${MOST_CHANGED} changed units`, async () => {
    const { units, left, problems } = await checkTidy({ whole: false });
    expect(problems.join("\n")).toBe("");
    expect(units).toBeLessThanOrEqual(MOST_CHANGED);
    if (left > 0) console.log(`${left} more changed units wait for scripts/nightly/native-tidy.mjs`);
  });

  itWith(FORMATTER, "is told apart: a file in another style", async () => {
    const wrong = write("wrong.cc", "int  f( ) {return 1 ;}\n");
    const right = write("right.cc", "int f() { return 1; }\n");
    const { files, problems } = await checkFormat({ files: [wrong, right] });
    expect(files).toBe(2);
    expect(problems).toEqual([expect.stringMatching(/wrong\.cc$/)]);
  });

  itWith(TIDY, "is told apart: a unit with a mistake, and one whose header has it", async () => {
    // Named as native/ is: only its headers are judged.
    mkdirSync(join(folder, "native", "src"), { recursive: true });
    const header = write("native/src/old.h", "inline int * none() { return 0; }\n");
    const units = [
      write("native/src/wrong.cc", "int * none() { return 0; }\n"),
      write("native/src/includes.cc", `#include "${header}"\nint * other() { return none(); }\n`),
      write("native/src/right.cc", "int * none() { return nullptr; }\n"),
    ];
    const commands = units.map((file) => ({ directory: folder, file, command: `clang++ -c ${file}` }));
    write("compile_commands.json", JSON.stringify(commands));
    const [wrong, includes, right] = await Promise.all(units.map((unit) => tidyUnit(unit, folder)));
    expect(wrong).toMatch(/wrong\.cc:1:\d+: error: use nullptr/);
    expect(includes).toMatch(/old\.h:1:\d+: error: use nullptr/);
    expect(right).toBe("");
  });
});

it("CI installs the tools that these tests need", () => {
  const script = readFileSync(join(import.meta.dirname, "..", "scripts", "install-test-tools.sh"), "utf8");
  for (const tool of [FORMATTER, TIDY]) expect(script).toContain(`\n${tool} ${tool}\n`);
});

describe("selectUnits", () => {
  const units = listFiles().filter((file) => file.endsWith(".cc"));
  const find = (name: string) => listFiles().find((file) => file.endsWith(name))!;

  it("takes a unit itself, and a header's own unit", () => {
    const unit = find("src/infer/sampler.cc");
    expect(selectUnits([unit, find("src/infer/sampler.h")], units)).toEqual([unit]);
  });

  it("takes one unit that includes a header without one", () => {
    const [unit, ...others] = selectUnits([find("src/cpu/shared_range.h")], units);
    expect(unit).toMatch(/\.cc$/);
    expect(others).toEqual([]);
  });

  it("leaves other files aside", () => {
    expect(selectUnits([find("kernels/softmax.cu"), find("README.md")].filter(Boolean), units)).toEqual([]);
  });
});

describe("listChanged", () => {
  const at = (name: string) => join(folder, name);
  const git = (repository: string, ...args: string[]) =>
    execFileSync("git", ["-C", at(repository), "-c", "user.name=a", "-c", "user.email=a@b.c", ...args], {
      stdio: "pipe",
    });
  const names = (repository: string) =>
    listChanged(at(repository)).map((file) => file.slice(at(repository).length + 1));

  function commit(repository: string, ...files: string[]) {
    for (const name of files) write(`${repository}/${name}`, `// ${Math.random()}\n`);
    git(repository, "add", "-A");
    git(repository, "commit", "-qm", "a commit");
  }

  beforeAll(() => {
    execFileSync("git", ["init", "-q", "-b", "main", at("whole")], { stdio: "pipe" });
    commit("whole", "first.cc", "second.cc", "third.cc");
    commit("whole", "second.cc");
  });

  it("on main: the files of the last commit and uncommitted ones, the latter first", () => {
    expect(names("whole")).toEqual(["second.cc"]);
    write("whole/third.cc", "// another\n");
    write("whole/new.cc", "// another\n");
    expect(names("whole")).toEqual(["new.cc", "third.cc", "second.cc"]);
    git("whole", "stash", "-u", "-q");
  });

  it("on a branch: all that differs from main, the newest changes first", () => {
    git("whole", "checkout", "-q", "-b", "branch");
    commit("whole", "first.cc");
    commit("whole", "third.cc");
    expect(names("whole")).toEqual(["third.cc", "first.cc"]);
    git("whole", "checkout", "-q", "main");
  });

  it("in a clone of one commit: all files, because their changes are unknown", () => {
    execFileSync("git", ["clone", "-q", "--depth", "1", `file://${at("whole")}`, at("shallow")], { stdio: "pipe" });
    expect(names("shallow")).toEqual(["first.cc", "second.cc", "third.cc"]);
  });

  it("in a clone of another branch, without main", () => {
    const from = ["--single-branch", "--branch", "branch", `file://${at("whole")}`];
    execFileSync("git", ["clone", "-q", ...from, at("single")], { stdio: "pipe" });
    expect(names("single")).toEqual(["third.cc"]);
  });

  it("without git: nothing", () => {
    expect(listChanged(tmpdir())).toEqual([]);
  });
});
