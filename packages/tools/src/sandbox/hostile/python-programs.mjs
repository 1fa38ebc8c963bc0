/**
 * Python programs that a policy or an attacker could write, to get out, to run for ever or to take all memory. Fields
 * as in javascript-programs.mjs. They are written for these limits: 96 MiB, 8 MiB of files, 2,000 bytes of output, and
 * 1 s of CPU time for those that may end with `cpu`.
 */
const make = (ends, isSlow, programs) =>
  Object.entries(programs).map(([name, program]) => {
    const [code, says] = Array.isArray(program) ? program : [program];
    return { name, language: "python", code, ends, says, isSlow };
  });

/**
 * Looks for the bridge to JavaScript in every place where the interpreter keeps objects; `use` runs with a found one as
 * `M`.
 */
const findBridge = (use) => `import gc, sys
found = [o for o in gc.get_objects() if type(o).__name__ in ("JsFinder", "JsProxy", "JsCallable")]
todo, seen = [object], set()
while todo:
    for kind in type.__subclasses__(todo.pop()):
        if kind not in seen:
            seen.add(kind)
            todo.append(kind)
for kind in seen:
    for value in list(getattr(kind, "__dict__", {}).values()):
        space = getattr(value, "__globals__", {})
        found += [o for o in space.values() if type(o).__name__.startswith("Js") or hasattr(o, "jsproxies")]
finders = [o for o in found if hasattr(o, "jsproxies")]
proxies = [p for f in finders for p in f.jsproxies.values()] + [o for o in found if type(o).__name__ == "JsProxy"]
print("found", len(proxies) > 0)
for M in proxies:
    try:
        M = M._module
    except AttributeError:
        pass
${use.replace(/^/gm, "    ")}
print("done")`;

/** Programs that once ended the host, or took all of its memory. */
export const formerEscapes = [
  ...make("ok|error", false, {
    "looks into JavaScript's memory": [findBridge("dir(M.HEAP8)"), /found False|cannot be reached/],
    "copies JavaScript's memory": [
      findBridge("[M.HEAPU8.constructor.new(2**28) for i in range(50)]"),
      /found False|cannot be reached/,
    ],
    "makes code in JavaScript": [
      findBridge("M.constructor.constructor('return 1')()"),
      /found False|cannot be reached/,
    ],
    "asks for the bridge by name": [
      `import gc
for f in gc.get_objects():
    if hasattr(f, "jsproxies"):
        M = f.jsproxies["pyodide_js"]._module
        dir(M.HEAP8)
print("none")`,
      /none|cannot be reached/,
    ],
  }),
];

const loops = make("cpu", true, {
  while: "while True: pass",
  "in a catch-all": "while True:\n  try: 1 / 0\n  except BaseException: pass",
  "in finally": "try:\n  raise SystemExit\nfinally:\n  while True: pass",
  "in __del__": "class A:\n  def __del__(self):\n    while True: pass\nA()",
  "in __repr__": "class A:\n  def __repr__(self):\n    while True: pass\nA()",
  "in __str__ of an error": "class E(Exception):\n  def __str__(self):\n    while True: pass\nraise E",
  "in __getattr__": "class A:\n  def __getattr__(self, n):\n    while True: pass\nA().x",
  "in __hash__": "class A:\n  def __hash__(self):\n    while True: pass\n{A()}",
  "in exec": "exec('while True: pass')",
  "in a lambda": "(lambda f: f(f))(lambda f: [None for _ in iter(int, 1)])",
  "in a comparison": "class A:\n  def __lt__(self, o):\n    while True: pass\nsorted([A(), A()])",
  "in a trace": "import sys\ndef t(*a):\n  while True: pass\nsys.settrace(t)\n(lambda: 1)()",
  "at exit": "import atexit\ndef f():\n  while True: pass\natexit.register(f)\natexit._run_exitfuncs()",
  "of a generator": "def g():\n  while True: yield 1\nsum(g())",
  "of itertools": "import itertools\nsum(itertools.repeat(1))",
  "of count": "import itertools, collections\ncollections.deque(itertools.count(), maxlen=0)",
  "of asyncio": "import asyncio\nasync def f():\n  while True: await asyncio.sleep(0)\nasyncio.run(f())",
  "over a huge range": "for i in range(10 ** 15): pass",
  "of a huge range in C": "sum(range(10 ** 12))",
  "of a huge power": "3 ** (3 ** 30)",
  "of a huge product": "import math\nmath.factorial(10 ** 7)",
  "of a regular expression (a+)+": "import re\nre.match(r'^(a+)+$', 'a' * 40 + 'b')",
  "of a regular expression (.*)*": "import re\nre.match(r'^(?:a|aa)+$', 'a' * 80 + 'b')",
  "of a hash": "import hashlib\nwhile True: hashlib.sha256(b'a' * 10 ** 6)",
  "that prints": "while True: print('x')",
  "that writes to standard error": "import sys\nwhile True: sys.stderr.write('x')",
  "that writes a file again": "while True: open('f', 'w').write('x' * 1000)",
  "that changes recursion": "import sys\nwhile True: sys.setrecursionlimit(1000)",
  "of a signal":
    "import signal\nsignal.signal(signal.SIGUSR1, lambda *a: None)\nwhile True: signal.raise_signal(signal.SIGUSR1)",
  "of sorting": "import random\nwhile True: sorted(random.random() for _ in range(1000))",
});

const shortLoops = make("cpu", false, {
  "keeps what it printed": ["print('before', flush=True)\nwhile True: pass", /^before$/m],
});

const waits = make("cpu|timeout", true, {
  "for an hour": "import time\ntime.sleep(3600)",
  "for a lock": "import threading\nl = threading.Lock(); l.acquire(); l.acquire(timeout=3600)",
  "for a queue": "import queue\nqueue.Queue().get(timeout=3600)",
  "for a coroutine": "import asyncio\nasync def f(): await asyncio.sleep(3600)\nasyncio.run(f())",
});

const bombs = make("ok|error|memory|cpu", true, {
  "one array": "bytearray(10 ** 9)",
  arrays: "x = []\nwhile True: x.append(bytearray(10 ** 6))",
  texts: "x = []\nwhile True: x.append('a' * 10 ** 6)",
  "texts that double": "s = 'ab'\nwhile True: s += s",
  "lists that double": "x = [1]\nwhile True: x += x",
  "nested lists": "x = []\nwhile True: x = [x]",
  "nested tuples that are shown": "x = ()\nfor i in range(10 ** 5): x = (x,)\nrepr(x)",
  dictionaries: "d = {}\nwhile True: d[len(d)] = {}",
  sets: "s = set()\nwhile True: s.add(len(s))",
  objects: "class A: pass\nx = []\nwhile True: x.append(A())",
  "objects in circles": "class A: pass\nwhile True:\n  a = A(); a.a = a; a.b = bytearray(1000)",
  "objects that come back":
    "x = []\nclass A:\n  def __del__(self): x.append(self); x.append(A())\nA()\nwhile x: x.pop()",
  classes: "x = []\nwhile True: x.append(type('A', (), {}))",
  functions: "x = []\nwhile True: x.append(lambda: 1)",
  generators: "x = []\nwhile True: x.append((i for i in range(10)))",
  integers: "x = 3\nwhile True: x *= x",
  decimals: "import decimal\ndecimal.getcontext().prec = 10 ** 9\ndecimal.Decimal(1) / 3",
  "compressed zeros": "import zlib\nzlib.decompress(zlib.compress(bytes(10 ** 7)) * 1, bufsize=10 ** 9)",
  "regular expressions": "import re\nx = []\nwhile True: x.append(re.compile('a' * (len(x) % 100)))",
  "format of a width": "'%1000000000d' % 1",
  "format with a width": "f'{1:>999999999}'",
  "exceptions in a chain": "e = None\nwhile True:\n  n = ValueError(); n.__cause__ = e; e = n",
  frames: "import sys\nx = []\ndef f(): x.append(sys._getframe())\nwhile True: f()",
  source: "compile('1+' * 10 ** 7 + '1', 'a', 'eval')",
  "deep source": "eval('(' * 10 ** 5 + ')' * 10 ** 5)",
  "json that is deep": "import json\njson.loads('[' * 10 ** 6)",
  pickles: "import pickle\npickle.loads(b'X\\xff\\xff\\xff\\x7f')",
  marshal: "import marshal\nmarshal.loads(b's\\xff\\xff\\xff\\x7f')",
  "maps of memory": "import mmap\nx = []\nwhile True: x.append(mmap.mmap(-1, 10 ** 7))",
  "many open files": "x = []\nwhile True: x.append(open('f', 'w'))",
  "many files": "n = 0\nwhile True:\n  open(f'f{n}', 'w').close(); n += 1",
  "many folders": "import os\nwhile True: os.mkdir('d'); os.chdir('d')",
  ctypes: "import ctypes\nx = []\nwhile True: x.append(ctypes.create_string_buffer(10 ** 6))",
  "calls too deep in C": "import functools\nf = len\nfor i in range(10 ** 5): f = functools.partial(f)\nf([])",
  "calls without a limit": "import sys\nsys.setrecursionlimit(10 ** 9)\ndef f(): f()\nf()",
  "repr without a limit":
    "import sys\nsys.setrecursionlimit(10 ** 9)\nclass A:\n  def __repr__(self): return repr(self)\nA()",
  "comparisons without a limit":
    "import sys\nsys.setrecursionlimit(10 ** 9)\na = []; b = []\nfor i in range(10 ** 5): a = [a]; b = [b]\na == b",
});

const limits = make("error", false, {
  memory: ["bytearray(10 ** 9)", /MemoryError/],
  recursion: ["def f(): f()\nf()", /RecursionError/],
  "one file": ["f = open('b', 'wb')\nwhile True: f.write(b'x' * 10 ** 6)", /OSError/],
  "a pipe": ["import os\nr, w = os.pipe()\nwhile True: os.write(w, b'x' * 65536)", /OSError/],
  "a thread": ["import threading\nthreading.Thread(target=print).start()", /RuntimeError/],
  digits: ["str(10 ** 10 ** 5)", /ValueError/],
});

const errors = make("error", false, {
  "1 MB of message": "raise ValueError('x' * 10 ** 6)",
  "a message of many lines": "raise ValueError('x\\n' * 10 ** 5)",
  "a message that cannot be shown": "class E(Exception):\n  def __str__(self): raise self\nraise E",
  "a class without a name": "raise type('', (BaseException,), {})",
  "a name of 1 MB": "raise type('x' * 10 ** 6, (Exception,), {})",
  "a group": ["raise ExceptionGroup('g', [ValueError(i) for i in range(1000)])", /ExceptionGroup/],
  "a chain of causes":
    "def f(n):\n  try:\n    if n: f(n - 1)\n    else: 1 / 0\n  except Exception as e: raise ValueError(n) from e\nf(100)",
  KeyboardInterrupt: ["raise KeyboardInterrupt", /KeyboardInterrupt/],
  GeneratorExit: ["raise GeneratorExit", /GeneratorExit/],
  "sys.exit with a number": ["import sys\nsys.exit(3)", /SystemExit: 3/],
  "sys.exit with a text": ["import sys\nsys.exit('x' * 10 ** 6)", /SystemExit: x/],
  "os._exit": ["import os\nos._exit(0)", /interpreter ended/],
  "os.abort": ["import os\nos.abort()", /interpreter ended/],
  "os.kill": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
  "raise of a signal": "import signal\nsignal.raise_signal(signal.SIGABRT)",
  "a syntax error": ["x = ;", /SyntaxError/],
  "bytes of zero in source": "exec('x\\0')",
  "source of strange characters": "𝐱 = ٣ +",
  "an exit from a hook": "import sys\nsys.excepthook = lambda *a: 1 / 0\nraise ValueError('told')",
  "a last value that cannot be shown": "class A:\n  def __repr__(self): return 1\nA()",
  "descriptors are exchanged": "import os\nos.dup2(0, 1); os.dup2(0, 2)",
  "no input left": ["input()", /EOFError/],
});

const ends = make("ok", false, {
  "exit()": "import sys\nsys.exit()",
  "exit(0)": "raise SystemExit(0)",
  "100,000 lines": "for i in range(10 ** 5): print(i)",
  "10 MB at once": "print('x' * 10 ** 7)",
  "10 MB as value": "'x' * 10 ** 7",
  "bytes of zero": "print('\\0' * 10 ** 5)",
  "bytes that are no text": "import sys\nsys.stdout.buffer.write(b'\\xff\\xfe' * 1000)",
  "halves of characters": "print('\\ud83d'.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace'))",
  "output is closed": "import sys\nprint('x'); sys.stdout.close()",
  "output is gone": "import sys\nsys.stdout = None\nprint(1)",
  "output by descriptor": ["import os\nos.write(1, b'by number\\n')", /by number/],
  "descriptors are closed": "import os\nfor fd in range(3): os.close(fd)",
  "an object that fails in __del__": "class A:\n  def __del__(self): raise ValueError\nA()\n1",
  "builtins are gone": "import builtins\nbuiltins.__dict__.clear()",
  "modules are gone": "import sys\nsys.modules.clear()",
  "everything is collected": "import gc\ngc.unfreeze(); gc.collect()",
  umask: "import os\nos.umask(0o777)",
  "files are removed": "import os, shutil\nshutil.rmtree('/lib', ignore_errors=True)\nos.chdir('/')",
  "files are exchanged": "open('/lib/python314.zip', 'wb').write(b'broken')",
  "files have no rights": "import os\nos.chmod('/home', 0); os.chmod('/', 0)",
  "links in a circle":
    "import os\nos.symlink('a', 'b'); os.symlink('b', 'a')\ntry: open('a')\nexcept OSError: print('no')",
  devices: "import os\nprint(os.listdir('/dev'))",
  "memory is read by address": "import ctypes\nprint(len(ctypes.string_at(1024, 100000)))",
});

const overwritten = make("ok|error|cpu|memory|crashed", true, {
  "memory is written by address": "import ctypes\nctypes.memset(0, 255, 30 * 2 ** 20)",
  "an object is written over": "import ctypes\nctypes.memset(id(len), 0, 64)\nlen([])",
  "the type of types is written over": "import ctypes\nctypes.memset(id(type), 255, 400)",
  "a function at a wild address": "import ctypes\nctypes.CFUNCTYPE(ctypes.c_int)(123456)()",
  "a function at every address":
    "import ctypes\nfor i in range(1, 20000):\n  try: ctypes.CFUNCTYPE(ctypes.c_int)(i)\n  except Exception: pass",
  "all small functions are called": "import ctypes\nfor i in range(1, 200): ctypes.CFUNCTYPE(None)(i)()",
  "code is made by hand": "f = lambda: 1\nf.__code__ = f.__code__.replace(co_code=bytes(100), co_stacksize=0)\nf()",
  "code with wild opcodes": "f = lambda: 1\nf.__code__ = f.__code__.replace(co_code=bytes(range(0, 200)))\nf()",
  faulthandler: "import faulthandler\nfaulthandler._sigsegv()",
  "a null pointer": "import ctypes\nctypes.string_at(0)",
});

const doors = make("error", false, {
  "import js": ["import js", /ModuleNotFoundError/],
  "import pyodide_js": ["import pyodide_js", /ModuleNotFoundError/],
  "from js import fetch": ["from js import fetch", /ModuleNotFoundError/],
  "import _pyodide_core": ["import _pyodide_core\n_pyodide_core.JsProxy()", /Error/],
  run_js: ["from pyodide.code import run_js\nrun_js('1')", /ModuleNotFoundError/],
  micropip: ["import micropip", /ModuleNotFoundError/],
  "pyodide.http": "import pyodide.http\npyodide.http.open_url('http://127.0.0.1')",
  subprocess: ["import subprocess\nsubprocess.run(['ls'])", /OSError/],
  "os.popen": "import os\nos.popen('ls').read()",
  "os.fork": "import os\nos.fork()",
  "os.execv": "import os\nos.execv('/bin/sh', ['sh'])",
  "os.posix_spawn": "import os\nos.posix_spawn('/bin/sh', ['sh'], {})",
  multiprocessing: "import multiprocessing\nmultiprocessing.Process(target=print).start()",
  "a pool of processes": "import concurrent.futures as c\nwith c.ProcessPoolExecutor() as p: p.submit(print).result()",
  "a socket": ["import socket\nsocket.socket().connect(('127.0.0.1', 22))", /OSError/],
  "a server": ["import socket\nsocket.create_server(('127.0.0.1', 8080))", /Error/],
  "a pair of sockets": "import socket\nsocket.socketpair()",
  "a name": ["import socket\nsocket.gethostbyname('example.com')", /gaierror/],
  urllib: ["import urllib.request\nurllib.request.urlopen('http://127.0.0.1:1')", /URLError/],
  "http.client": ["import http.client\nhttp.client.HTTPConnection('127.0.0.1').request('GET', '/')", /Errno/],
  "asyncio's network": "import asyncio\nasyncio.run(asyncio.open_connection('127.0.0.1', 22))",
  "a file of the host": ["open('/etc/passwd')", /FileNotFoundError/],
  "a file of this project": ["open('../../package.json')", /FileNotFoundError/],
  "memory of the process": ["open('/proc/self/mem', 'rb')", /Error/],
  "environment of the process": ["open('/proc/self/environ')", /Error/],
  "a library": "import ctypes\nctypes.CDLL('libc.so.6')",
  "a symbol": "import ctypes\nctypes.pythonapi.Py_Exit(0)",
});

const blanks = make("ok", false, {
  "os.system": ["import os\nos.system('echo out')", /^-1$/m],
  "os.environ": ["import os\nprint('PATH=' + os.environ.get('PATH', '-'), len(os.environ) < 12)", /True/],
  folders: ["import os\nsorted(os.listdir('/'))", /^\['dev', 'home', 'lib', 'proc', 'tmp'\]$/m],
  processes: ["import os\nos.listdir('/proc')", /^\['self'\]$/m],
  "a ReDoS that ends": ["import re\nbool(re.match(r'(a+)+$', 'a' * 18 + 'b'))", /False/],
});

export const pythonPrograms = [
  ...formerEscapes,
  ...shortLoops,
  ...loops,
  ...waits,
  ...bombs,
  ...limits,
  ...errors,
  ...ends,
  ...overwritten,
  ...doors,
  ...blanks,
];
