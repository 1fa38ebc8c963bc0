/**
 * JavaScript programs that a policy or an attacker could write, to get out, to run for ever or to take all memory.
 * `ends`: the allowed endings, separated by "|". `says`: a text that its output or error must contain. `isSlow`: left
 * to the nightly run. They are written for these limits: 32 MiB, 2,000 bytes of output, and 1 s of CPU time for those
 * that may end with `cpu`.
 */
const make = (ends, isSlow, programs) =>
  Object.entries(programs).map(([name, program]) => {
    const [code, says] = Array.isArray(program) ? program : [program];
    return { name, language: "javascript", code, ends, says, isSlow };
  });

/** Names of the host, as a program would look for them. */
const HOST_NAMES = ["process", "require", "module", "fetch", "Deno", "Bun", "WebAssembly", "Worker", "XMLHttpRequest"];
const HOST_TYPES = HOST_NAMES.map((name) => `typeof ${name}`).join(" + ");
const NOTHING = new RegExp(`^"?(undefined){${HOST_NAMES.length}}"?$`, "m");

/** Programs that once ended the host, or took all of its memory. */
export const formerEscapes = [
  ...make("error|memory", false, {
    "throws an object of 1.5 million keys":
      "const a = { message: 'm' }; for (let i = 0; i < 1500000; i++) a['k' + i] = i; throw a",
    "throws an object of as many keys as memory holds":
      "const a = { message: 'm' }; try { for (let i = 0; ; i++) a['k' + i] = i } catch {} throw a",
    "takes array buffers": "const a = []; for (;;) a.push(new ArrayBuffer(1e7))",
    "binds functions to functions": "let f = () => 1; for (;;) f = f.bind(f, f)",
    "takes objects": "const a = []; for (;;) a.push({})",
  }),
  ...make("error", false, {
    "throws 20 MB of text": ["throw 'x'.repeat(2e7)", /^Uncaught x{500}/m],
    "throws an error with 20 MB of message": ["throw new Error('x'.repeat(2e7))", /^Error: x{500}/m],
    "rejects with an object of many keys":
      "const a = { message: 'm' }; for (let i = 0; i < 1e5; i++) a['k' + i] = i; Promise.reject(a)",
  }),
];

const loops = make("cpu", true, {
  for: "for (;;);",
  while: "while (true) {}",
  "do while": "do {} while (1)",
  "labels and continue": "a: for (;;) { for (;;) continue a }",
  "in a catch-all": "for (;;) try { null.x } catch {}",
  "in finally": "try { throw 1 } finally { for (;;); }",
  "in eval": "eval('for (;;);')",
  "in a new function": "new Function('for (;;);')()",
  "in a getter": "const o = { get a() { for (;;); } }; o.a",
  "in toString": "'' + { toString() { for (;;); } }",
  "in valueOf": "+{ valueOf() { for (;;); } }",
  "in toJSON": "({ toJSON() { for (;;); } })",
  "in a comparator": "[2, 1].sort(() => { for (;;); })",
  "in a replacer": "'a'.replace(/a/, () => { for (;;); })",
  "in a proxy": "new Proxy({}, { get() { for (;;); } }).x",
  "in the iterator of a spread": "[...{ [Symbol.iterator]: () => ({ next() { for (;;); } }) }]",
  "of thenables": "const t = { then(f) { f(t) } }; await t",
  "of intervals": "setInterval(() => {}, 1)",
  "of timers": "const f = () => setTimeout(f, 1e9); f()",
  "of await": "for (;;) await 0",
  "of an async generator": "async function* g() { for (;;) yield 1 } for await (const x of g());",
  "of a generator": "function* g() { for (;;) yield 1 } for (const x of g());",
  "of Date": "const end = Date.now() + 1e9; while (Date.now() < end);",
  "over a huge range": "let s = 0; for (let i = 0; i < 1e15; i++) s += i; s",
  "over the message of an error": "throw { get message() { for (;;); } }",
  "over the stack of an error": "throw { message: 'm', get stack() { for (;;); } }",
  "over the name of an error":
    "const e = new Error('x'); Object.defineProperty(e, 'name', { get() { for (;;); } }); throw e",
  "of a regular expression (a+)+": "/^(a+)+$/.test('a'.repeat(40) + 'b')",
  "of a regular expression (.*)*": "/^(.*)*x$/.test('a'.repeat(40))",
  "of a regular expression with alternatives": "/^(a|aa)+$/.test('a'.repeat(60) + 'b')",
  "that prints": "for (;;) console.log('x')",
  "that prints nothing": "for (;;) print('')",
});

const shortLoops = make("cpu", false, {
  "keeps what it printed": ["console.log('before'); for (;;);", /^before$/m],
});

const bombs = make("error|memory|cpu", true, {
  "promises of promises": "const f = () => Promise.resolve().then(f); f()",
  "strings that double": "let s = 'xy'; for (;;) s += s",
  "strings in an array": "const a = []; for (let i = 0; ; i++) a.push(('' + i).padStart(1e6, 'y'))",
  "typed arrays": "const a = []; for (;;) a.push(new Float64Array(1e6))",
  "bytes that are written": "const a = []; for (;;) a.push(new Uint8Array(1e6).fill(1))",
  "big integers": "let x = 3n; for (;;) x *= x",
  "big integers of a power": "2n ** (2n ** 40n)",
  maps: "const m = new Map(); for (let i = 0; ; i++) m.set(i, {})",
  sets: "const s = new Set(); for (let i = 0; ; i++) s.add('k' + i)",
  "weak maps": "const m = new WeakMap(), k = []; for (;;) { const o = {}; k.push(o); m.set(o, o) }",
  symbols: "const a = []; for (;;) a.push(Symbol('s'))",
  closures: "let f = () => 1; for (;;) { const g = f; f = () => g }",
  prototypes: "let o = {}; for (;;) o = Object.create(o)",
  proxies: "let o = {}; for (;;) o = new Proxy(o, {})",
  "nested arrays": "let a = []; for (;;) a = [a]",
  "arrays that double": "let a = [1]; for (;;) a = a.concat(a)",
  "arrays of 2^32 - 1": "new Array(2 ** 32 - 1).fill(0)",
  "Array.from a length": "Array.from({ length: 2 ** 40 })",
  "join of holes": "new Array(2 ** 28).join('x')",
  "spread of a generator": "[...(function* () { for (;;) yield {} })()]",
  "functions from text": "const a = []; for (let i = 0; ; i++) a.push(new Function('return ' + i))",
  "regular expressions": "const a = []; for (let i = 0; ; i++) a.push(new RegExp('a'.repeat(i % 1000)))",
  "errors with stacks": "const a = []; for (;;) a.push(new Error('x'))",
  "promises that wait": "const a = []; for (;;) a.push(new Promise(() => {}))",
  "timers that wait": "for (;;) setTimeout(() => {}, 1e9)",
  "jobs that wait": "for (;;) Promise.resolve().then(() => {})",
  "text of JSON": "JSON.stringify(new Array(1e8).fill('x'))",
  "split of a text": "'x'.repeat(2e7).split('')",
  "getters that define getters":
    "const o = {}; for (let i = 0; ; i++) Object.defineProperty(o, 'k' + i, { get: () => i })",
  "buffers that may grow":
    "const a = []; for (;;) { const b = new ArrayBuffer(8, { maxByteLength: 1e7 }); b.resize(1e7); a.push(b) }",
});

const limits = make("error", false, {
  "a string too long": "'x'.repeat(2 ** 30)",
  "a buffer too large": "new ArrayBuffer(2 ** 31)",
  "calls too deep": ["const f = () => f() + 1; f()", /stack/],
  "getters too deep": ["const o = { get a() { return this.a } }; o.a", /stack/],
  "JSON too deep": "JSON.parse('['.repeat(1e6))",
  "source too deep": "eval('('.repeat(1e5))",
  "a regular expression too deep": "new RegExp('('.repeat(1e5) + ')'.repeat(1e5))",
});

const errors = make("error", false, {
  "of null": ["throw null", /Uncaught null/],
  "of nothing": ["throw undefined", /Uncaught undefined/],
  "of a symbol": ["throw Symbol('s')", /Uncaught Symbol\(s\)/],
  "of a big integer": ["throw 5n", /Uncaught 5/],
  "of a function": "throw () => 1",
  "of a frozen object": ["throw Object.freeze({ message: 'cold' })", /cold/],
  "whose message throws": "throw { get message() { throw this } }",
  "whose message is an object": "throw { message: { toString: () => 'x'.repeat(1e6) } }",
  "whose message is a symbol": "throw { message: Symbol('x') }",
  "whose toString throws": "throw { toString() { throw 1 } }",
  "behind a proxy": "throw new Proxy({}, { has() { throw 1 }, get() { throw 2 } })",
  "behind a revoked proxy": "const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); throw proxy",
  "with 1 MB of stack": "const e = new Error('m'); e.stack = 'x'.repeat(1e6); throw e",
  "with 1 MB of name": "const e = new Error('m'); e.name = 'x'.repeat(1e6); throw e",
  "of many errors": ["throw new AggregateError(Array.from({ length: 1e4 }, () => new Error('x')), 'many')", /many/],
  "of a chain of causes":
    "let e = new Error('0'); for (let i = 0; i < 1e4; i++) e = new Error('' + i, { cause: e }); throw e",
  "from a timer": ["setTimeout(() => { throw new RangeError('late') }, 5)", /RangeError: late/],
  "from a promise that nobody waits for and a value": ["Promise.reject(new Error('x')); null.y", /TypeError/],
  "from toJSON of the value": "({ toJSON() { throw { message: 'x'.repeat(1e6) } } })",
  "from toString of what is printed": "console.log({ toJSON: () => { throw new Error('j') } })",
  "of a syntax at the end of 1 MB": `${"let x = 1;".repeat(1e5)}let`,
  "of a promise that nothing resolves": ["await new Promise(() => {})", /never settles/],
  "after String.prototype.slice is gone": [
    "String.prototype.slice = () => { throw 1 }; throw new Error('x'.repeat(1e6))",
    /x{99}/,
  ],
  "after Reflect is gone": [
    "delete globalThis.Reflect; delete globalThis.String; throw new Error('still told')",
    /still told/,
  ],
});

const floods = make("ok", false, {
  "100,000 lines": "for (let i = 0; i < 1e5; i++) console.log(i)",
  "10 MB at once": "console.log('x'.repeat(1e7))",
  "10 MB as value": "'x'.repeat(1e7)",
  "bytes of zero": "console.log('\\0'.repeat(1e5))",
  "halves of characters": "console.log('\\ud83d'.repeat(1e5))",
  "wide characters": "console.log('💡'.repeat(1e5))",
  "a value of many keys": "const a = {}; for (let i = 0; i < 1e5; i++) a['k' + i] = i; a",
  "a value that is a circle": ["const a = []; a.push(a, a); a", /Circular/],
  "lines after Array.prototype.map is gone": [
    "Array.prototype.map = () => ({ join: () => 'x'.repeat(1e6) }); console.log(1)",
    /x{500}/,
  ],
});

const walls = make("ok", false, {
  "names of the host": [HOST_TYPES, NOTHING],
  "names of the host by a constructor": [
    `console.log.constructor("return " + ${JSON.stringify(HOST_TYPES)})()`,
    NOTHING,
  ],
  "names of the host by print": [`print.constructor.constructor("return " + ${JSON.stringify(HOST_TYPES)})()`, NOTHING],
  "names of the host by this": [`(function () { return ${HOST_TYPES} }).call()`, NOTHING],
  "names of the host by an async function": [
    `(async () => {}).constructor("return " + ${JSON.stringify(HOST_TYPES)})()`,
    NOTHING,
  ],
  "names of the host by frames": [
    `let seen = 0; Error.prepareStackTrace = (e, s) => { seen = s; return '' }; new Error('x').stack; ${HOST_TYPES}`,
    NOTHING,
  ],
  "names of QuickJS's own shell": [
    "typeof std + typeof os + typeof scriptArgs + typeof loadScript",
    /^"undefinedundefined/,
  ],
  "an object's prototype is poisoned": "Object.prototype.then = (f) => f(1); Object.prototype.message = 'p'; 1",
  "an array's prototype is poisoned": "Array.prototype.push = null; Array.prototype[Symbol.iterator] = null; 1",
  "everything is frozen": "Object.freeze(globalThis); Object.freeze(Object.prototype); Object.freeze(console); 1",
  "console is another": ["const log = console.log; console = { log: () => log('mine') }; console.log('x')", /mine/],
  "no input": ["readline()", /^null$/m],
});

const doors = make("error", false, {
  "globals are gone": "for (const k of Object.getOwnPropertyNames(globalThis)) try { delete globalThis[k] } catch {} 1",
  "imports fs": "import fs from 'fs'; fs",
  "imports node:child_process": "import('node:child_process')",
  "imports a file": "await import('/etc/passwd')",
  "imports a URL": "await import('https://example.com/a.js')",
  "imports data": "await import('data:text/javascript,1')",
  "imports QuickJS's os": "import * as os from 'os'; os.exec(['ls'])",
  requires: "require('fs')",
  fetches: "fetch('http://127.0.0.1')",
  "asks the process": "process.exit(1)",
  "kills the process": "process.kill(process.pid)",
  "waits without end": "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)",
  "compiles WebAssembly": "new WebAssembly.Memory({ initial: 1 })",
});

export const javascriptPrograms = [
  ...formerEscapes,
  ...shortLoops,
  ...loops,
  ...bombs,
  ...limits,
  ...errors,
  ...floods,
  ...walls,
  ...doors,
];
