import { afterAll, describe, expect, it } from "vitest";
import { PythonSandbox } from "./python-sandbox.js";

// Every program starts an interpreter, so programs that end well are tested together. With one worker the next program waits
// for the interpreter of the last one: a second process would take a second more of CPU time.
const workers = 1;
const sandbox = new PythonSandbox({ workers, cpuS: 30, timeoutS: 50, memoryMb: 96, diskMb: 8, outputBytes: 4000 });
const run = (code: string, stdin?: string) => sandbox.run(code, { stdin });
afterAll(() => sandbox.dispose());

/** Runs each attempt separately and prints `index result`, or `index ! error type`. */
const attempt = (attempts: string[]) => `
import gc, sys
attempts = ${JSON.stringify(attempts)}
for index, source in enumerate(attempts):
    try:
        space = {}
        exec(source, space)
        print(index, space.get("result"))
    except BaseException as error:
        print(index, "!", type(error).__name__)
`;

describe("Python programs", () => {
  it("give their output and the value of the last expression", async () => {
    const code = `import asyncio, time, sys
print("hi ☃ 💡 é" * 2, file=sys.stderr)
async def wait(): await asyncio.sleep(0.01); return 3
print(await asyncio.gather(wait(), wait()))
print(input(), input().upper(), sys.stdin.read())
open("f.txt", "w").write("kept"); print(open("f.txt").read())
if __name__ == "__main__": print("main")
1 + 1.0`;
    expect(await run(code, "a\nb\nc")).toEqual({
      status: "ok",
      output: "hi ☃ 💡 éhi ☃ 💡 é\n[3, 3]\na B c\nkept\nmain\n2.0\n",
      truncated: false,
    });
  });

  it("give their errors as Python does, with the output before them", async () => {
    expect(await run("print('before')\ndef f(x):\n    return 1 / x\nf(0)")).toEqual({
      status: "error",
      output: "before\n",
      truncated: false,
      error: expect.stringMatching(
        /^Traceback.*line 4, in <module>\n {4}f\(0\).*ZeroDivisionError: division by zero$/s,
      ),
    });
    const asyncRun = "import asyncio\nasync def f(): await asyncio.sleep(0.01); return 3\nasyncio.run(f())";
    expect((await run(asyncRun)).output).toBe("3\n");
    expect((await run("x = ;")).error).toMatch(/^File "main.py", line 1.*SyntaxError: invalid syntax$/s);
    expect((await run("import sys; sys.exit(3)")).error).toBe("SystemExit: 3");
  });

  it("draw the same random numbers with a seed", async () => {
    const seeded = new PythonSandbox({ workers, seed: 7 });
    const draws = [
      await seeded.run("import random; random.random()"),
      await seeded.run("import random; random.random()"),
    ];
    expect(draws[0]!.output).toBe(draws[1]!.output);
    await seeded.dispose();
  });
});

describe("limits of Python programs", () => {
  it("infinite loops are stopped, their output is kept, and the next program runs", async () => {
    const short = new PythonSandbox({ workers, cpuS: 0.5, timeoutS: 50, outputBytes: 100 });
    expect(
      await short.run("print('in', flush=True)\nwhile True:\n  try:\n    while True: pass\n  except: pass"),
    ).toEqual({
      status: "cpu",
      output: "in\n",
      truncated: false,
      error: "error: stopped after 0.5 s of CPU time",
    });
    expect(await short.run("while True: print('☃' * 1000)")).toMatchObject({
      status: "cpu",
      output: "☃".repeat(33),
      truncated: true,
    });
    const running = short.run("while True: pass", { signal: AbortSignal.timeout(50) });
    expect((await running).status).toBe("aborted");
    expect((await short.run("1")).output).toBe("1\n");
    await short.dispose();
  });

  it("sleeping counts as wall time", async () => {
    const short = new PythonSandbox({ workers, timeoutS: 0.3 });
    expect((await short.run("import time; time.sleep(60)")).status).toBe("timeout");
    await short.dispose();
  });

  it("memory, files, pipes and recursion have their limits, which Python tells", async () => {
    const bombs = [
      "x = bytearray(10 ** 9)",
      "x = []\nwhile True: x.append('a' * 10 ** 6)",
      "n = 0\nwhile True: open(f'a{n}', 'wb').write(b'x' * 10 ** 6); n += 1",
      "f = open('b', 'wb')\nwhile True: f.write(b'x' * 10 ** 6)",
      "import os\nr, w = os.pipe()\nwhile True: os.write(w, b'x' * 65536)",
      "def f(): return f()\nf()",
      "import os; os.truncate(open('c', 'w').fileno(), 10 ** 9)",
    ];
    const { output, status } = await run(attempt(bombs));
    const kinds = ["MemoryError", "MemoryError", "OSError", "OSError", "OSError", "RecursionError", "OSError"];
    expect([status, output]).toEqual(["ok", kinds.map((kind, i) => `${i} ! ${kind}\n`).join("")]);
    // Overwriting a file frees its space.
    const again = "for i in range(30):\n  f = open('f', 'wb'); f.write(b'x' * 10 ** 6); f.close()\nprint(i)";
    expect((await run(again)).output).toBe("29\n");
  });

  it("an interpreter that is broken on purpose ends its program only", async () => {
    expect((await run("import os; os.abort()")).error).toMatch(/interpreter ended/);
    expect((await run("import os; os._exit(3)")).status).toBe("error");
  });
});

describe("walls around Python programs", () => {
  it("no JavaScript, process, file or network of the host can be reached", async () => {
    const attempts = [
      "import js",
      "import pyodide_js",
      "from pyodide.code import run_js; run_js('1')",
      "import os; result = os.system('echo')",
      "import subprocess; subprocess.run(['ls'])",
      "import urllib.request; urllib.request.urlopen('http://127.0.0.1:1')",
      "import socket; socket.create_connection(('127.0.0.1', 22))",
      "open('/etc/passwd')",
      "import os; result = sorted(os.listdir('/'))",
      "import os; result = os.environ.get('PATH')",
    ];
    const { output } = await run(attempt(attempts));
    const refused = (i: number, kind: string) => `${i} ! ${kind}`;
    expect(output.trim().split("\n")).toEqual([
      refused(0, "ModuleNotFoundError"),
      refused(1, "ModuleNotFoundError"),
      refused(2, "ModuleNotFoundError"),
      "3 -1",
      refused(4, "OSError"),
      refused(5, "URLError"),
      refused(6, "gaierror"),
      refused(7, "FileNotFoundError"),
      "8 ['dev', 'home', 'lib', 'proc', 'tmp']",
      "9 /",
    ]);
  });

  it("one process gives each program the Python that it started with", async () => {
    const one = new PythonSandbox({ workers });
    const look = `import builtins, gc, io, locale, math, os, random, signal, sys, time, warnings
names = sorted(name for name in globals() if not name.startswith("__"))
state = [
    names, len(builtins.__dict__), math.pi, os.getcwd(), os.listdir("."), sorted(os.listdir("/tmp")), os.listdir("/home"),
    sorted(os.environ), os.umask(0o22), sys.getrecursionlimit(), sys.path, len(sys.modules), sys.stdout.encoding,
    str(signal.getsignal(signal.SIGINT)), gc.isenabled(), os.stat("/lib/python314.zip").st_size, oct(os.stat("/").st_mode),
    os.open("/dev/null", os.O_RDONLY), hasattr(int, "leak"), len(warnings.filters), sys.stdin.read(),
]
print(state)`;
    const first = await one.run(look);
    expect(first.status).toBe("ok");
    // A process with too much memory left in use is replaced: most programs must have had the same one.
    let reused = 0;
    const changes = [
      "import builtins, math, sys, json\nbuiltins.len = 7\nmath.pi = 3\nsys.modules['leak'] = math\nleak = 1\nsys.path.append('leak')",
      "import os\nos.mkdir('/tmp/d'); os.mkdir('d'); os.chdir('d'); open('leak', 'w').write('x'); os.environ['LEAK'] = '1'; os.putenv('L', '1')",
      "import os\nfor i in range(40): os.open('/dev/null', os.O_RDONLY)\nos.close(0); os.chmod('/', 0); os.umask(0o777)",
      "import os, shutil\nos.truncate('/lib/python314.zip', 10); shutil.rmtree('/home', ignore_errors=True); os.rename('/tmp', '/other')",
      "import sys, signal, gc, warnings\nsys.setrecursionlimit(5000); signal.signal(signal.SIGINT, signal.SIG_IGN); gc.disable(); warnings.simplefilter('error')",
      "import ctypes\nctypes.memset(id(7) + 8, 1, 4)\nx = bytearray(20 * 10 ** 6)",
      "import sys\nsys.stdout.write('no end of line'); sys.stdout = None",
      "import sys\nsys.stdin.readline()",
    ];
    for (const change of changes) {
      const before = one.pids.join();
      await one.run(change, { stdin: "left over\nand more" });
      expect((await one.run(look)).output, change).toBe(first.output);
      if (one.pids.join() === before) reused++;
    }
    expect(reused).toBeGreaterThan(changes.length / 2);
    await one.dispose();
  });

  it("leave nothing for the next program", async () => {
    const leak = `import builtins, math, sys, json
builtins.len = lambda x: 7
math.pi = 3
json.dumps = None
sys.modules["leak"] = math
open("/tmp/leak", "w").write("x")
open("/lib/python314.zip", "r+b").write(b"broken" * 100)
leak = 1`;
    expect((await run(leak)).status).toBe("ok");
    const look = `import math, sys, json, os
[len([]), math.pi, json.dumps([1]), "leak" in sys.modules, os.listdir("/tmp"), "leak" in globals()]`;
    expect((await run(look)).output).toBe("[0, 3.141592653589793, '[1]', False, [], False]\n");
  });
});
