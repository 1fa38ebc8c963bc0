/**
 * The realm of Pyodide: a separate context, in which nothing of Node exists. Pyodide takes it for a plain JavaScript
 * shell. `host` holds the few functions that lead out; they take and give numbers and strings, and write into arrays
 * that were made inside, so that no object of the outer realm ever gets in.
 *
 * Before a program runs, the realm is sealed: Python's WebAssembly can then call only file and clock functions, and the
 * bridge to JavaScript is gone, even for a program that finds the Python objects that stand for it. So a program can
 * change only Python's memory and the file system, and `restore` resets both.
 *
 * This text is evaluated inside. It gives a function that must be called with `host` and the limits, before Pyodide's
 * scripts run, and answers `{ load }`.
 */
export const REALM = `((host, limits) => {
  "use strict";
  const global = globalThis;
  // An error of the outer realm would bring an object of it inside.
  const guard = (f) => (...args) => {
    try {
      return f(...args);
    } catch {
      throw new Error("not possible in the sandbox");
    }
  };
  const now = guard(host.now);
  const randomBase64 = guard(host.random);
  const sizeOf = guard(host.size);
  const fill = guard(host.fill);
  const print = guard(host.print);

  global.performance = { now: () => now() };
  global.console = { log: () => {}, warn: () => {}, error: () => {}, info: () => {}, debug: () => {} };
  // Functions of a shell. Emscripten asks a shell for random bytes by "os.system".
  global.os = { system: (command, args) => randomBase64(Number(/head -c(\\d+)/.exec(args[1])[1])) };
  global.read = () => "{}";
  global.readbuffer = (name) => {
    const bytes = new Uint8Array(sizeOf(name));
    fill(name, bytes);
    return bytes.buffer;
  };
  global.load = () => {
    throw new Error("no scripts here");
  };
  // Python waits by itself; the tasks that Pyodide defers need no clock.
  global.setTimeout = () => 0;
  global.clearTimeout = () => {};
  global.noImport = () => {
    throw new Error("no modules here");
  };

  global.TextEncoder = class TextEncoder {
    encode(text) {
      const bytes = [];
      for (const char of String(text)) {
        let code = char.codePointAt(0);
        if (code >= 0xd800 && code < 0xe000) code = 0xfffd;
        if (code < 0x80) bytes.push(code);
        else if (code < 0x800) bytes.push(0xc0 | (code >> 6), 0x80 | (code & 63));
        else if (code < 0x10000) bytes.push(0xe0 | (code >> 12), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63));
        else bytes.push(0xf0 | (code >> 18), 0x80 | ((code >> 12) & 63), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63));
      }
      return Uint8Array.from(bytes);
    }
    encodeInto(text, target) {
      const bytes = this.encode(text);
      target.set(bytes);
      return { read: text.length, written: bytes.length };
    }
  };
  global.TextDecoder = class TextDecoder {
    constructor(encoding = "utf-8") {
      this.encoding = encoding;
    }
    decode(data) {
      if (data === undefined) return "";
      const bytes = ArrayBuffer.isView(data)
        ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
        : new Uint8Array(data);
      const parts = [];
      let units = [];
      const add = (unit) => {
        if (units.push(unit) === 4096) parts.push(String.fromCharCode(...units.splice(0)));
      };
      if (this.encoding === "latin1") for (const byte of bytes) add(byte);
      else if (this.encoding === "utf-16le") for (let i = 0; i + 1 < bytes.length; i += 2) add(bytes[i] | (bytes[i + 1] << 8));
      else decodeUtf8(bytes, add);
      return parts.join("") + String.fromCharCode(...units);
    }
  };
  const decodeUtf8 = (bytes, add) => {
    for (let i = 0; i < bytes.length; ) {
      const first = bytes[i++];
      if (first < 0x80) {
        add(first);
        continue;
      }
      const more = first >= 0xf0 && first < 0xf5 ? 3 : first >= 0xe0 ? 2 : first >= 0xc2 ? 1 : -1;
      let code = more < 0 || first >= 0xf5 ? -1 : first & (0x3f >> more);
      for (let left = more; code >= 0 && left > 0; left--) {
        if ((bytes[i] & 0xc0) !== 0x80) code = -1;
        else code = (code << 6) | (bytes[i++] & 63);
      }
      if (code < 0 || code > 0x10ffff) add(0xfffd);
      else if (code < 0x10000) add(code);
      else {
        add(0xd800 + ((code - 0x10000) >> 10));
        add(0xdc00 + ((code - 0x10000) & 0x3ff));
      }
    }
  };

  let isSealed = false;
  let isMarked = false;
  /** Called by Pyodide's script with all imports of its WebAssembly, before it is linked. */
  global.sealImports = (imports) => {
    const { allowed, marking, refused } = JSON.parse(limits.importRules);
    const refusals = new Map(refused);
    for (const name of Object.keys(imports)) {
      const original = imports[name];
      if (typeof original !== "function" || allowed.includes(name)) continue;
      const isMarking = marking.includes(name);
      const sealed = (...args) => {
        if (isSealed && !isMarking) {
          if (refusals.has(name)) return refusals.get(name);
          throw new Error("JavaScript cannot be reached: " + name);
        }
        isMarked = true;
        return original(...args);
      };
      // The linker reads the signature.
      imports[name] = Object.assign(sealed, original);
    }
  };

  /** Limits files and pipes: they live in this realm's memory, outside of Python's. */
  const limitFiles = ({ FS }) => {
    const { MEMFS } = FS.filesystems;
    const nodes = new Set();
    let used = 0;
    const reserve = (bytes) => {
      if (used + bytes > limits.diskBytes) {
        used = 0;
        for (const node of nodes) used += node.contents?.length ?? 0;
      }
      // 51: no space left on device.
      if (used + bytes > limits.diskBytes) throw new FS.ErrnoError(51);
    };
    const limit = (object, name, needed) => {
      const original = object[name];
      object[name] = function (...args) {
        const node = args[0].node ?? args[0];
        const before = node.contents?.length ?? 0;
        reserve(Math.max(needed(...args) - before, 0));
        const result = original.apply(this, args);
        nodes.add(node);
        used += (node.contents?.length ?? 0) - before;
        return result;
      };
    };
    const writeEnd = (stream, buffer, offset, length, position) => position + length;
    limit(MEMFS, "expandFileStorage", (node, capacity) => capacity);
    limit(MEMFS, "resizeFileStorage", (node, size) => size);
    limit(MEMFS.stream_ops, "write", writeEnd);
    if (MEMFS.ops_table) MEMFS.ops_table.file.stream.write = MEMFS.stream_ops.write;
    let piped = 0;
    const limitPipe = (pipeStream) => {
      const { write } = pipeStream.stream_ops;
      pipeStream.stream_ops.write = function (stream, buffer, offset, length, position) {
        piped += length;
        if (piped > limits.diskBytes) throw new FS.ErrnoError(51);
        return write.call(this, stream, buffer, offset, length, position);
      };
    };
    const forget = () => {
      used = piped = 0;
      nodes.clear();
    };
    return { limitPipe, forget };
  };

  /** Records the file system: directories, contents, open files. Returns a function that restores all of it. */
  const recordFiles = (FS) => {
    const nodes = [];
    const visit = (node) => {
      if (nodes.some((known) => known.node === node)) return;
      const { contents } = node;
      const isFolder = FS.isDir(node.mode) && typeof contents === "object";
      const kept = isFolder ? { ...contents } : (contents?.slice() ?? contents);
      nodes.push({ node, isFolder, contents: kept, fields: { ...node } });
      if (isFolder) for (const name of Object.keys(contents)) visit(contents[name]);
    };
    visit(FS.root);
    const chains = FS.nameTable.map((first) => {
      const chain = [];
      for (let node = first; node; node = node.name_next) chain.push(node);
      return chain;
    });
    const streams = FS.streams.map((stream) => stream && { stream, fields: { ...stream }, shared: { ...stream.shared } });
    const { currentPath } = FS;
    return () => {
      for (const { node, isFolder, contents, fields } of nodes) {
        for (const key of Object.keys(node)) if (!(key in fields)) delete node[key];
        Object.assign(node, fields);
        node.contents = isFolder ? { ...contents } : (contents?.slice() ?? contents);
      }
      FS.nameTable.fill(undefined);
      chains.forEach((chain, hash) => {
        FS.nameTable[hash] = chain[0];
        for (let i = 0; i < chain.length; i++) chain[i].name_next = chain[i + 1];
      });
      FS.streams.length = 0;
      for (const saved of streams) {
        if (saved) {
          const { stream, fields, shared } = saved;
          Object.assign(stream, fields, { shared: Object.assign(fields.shared, shared) });
        }
        FS.streams.push(saved && saved.stream);
      }
      FS.currentPath = currentPath;
    };
  };

  /** Calls a Python function with a text and a number; returns its text, or null. */
  const callPython = (module, target, text, number) => {
    const bytes = new TextEncoder().encode(text);
    const place = module._malloc(bytes.length + 16);
    module.HEAPU8.set(bytes, place + 16);
    const codeObject = module._PyUnicode_DecodeUTF8(place + 16, bytes.length, 0);
    module.HEAPU32.set([codeObject, module._PyLong_FromDouble(number)], place >> 2);
    const result = module._PyObject_Vectorcall(target, place, 2, 0);
    const start = result && module._PyUnicode_AsUTF8AndSize(result, place + 8);
    if (!start) {
      module._PyErr_Clear();
      return null;
    }
    const length = module.HEAPU32[(place + 8) >> 2];
    return new TextDecoder().decode(module.HEAPU8.subarray(start, start + length));
  };

  /** Forbids code from text, so also import(), whose errors would come from the outer realm. */
  const sealRealm = () => {
    const refuse = () => {
      throw new EvalError("code from text is not allowed here");
    };
    for (const kind of [() => {}, async () => {}, function* () {}, async function* () {}]) {
      Object.defineProperty(Object.getPrototypeOf(kind), "constructor", { value: refuse, configurable: false });
    }
    for (const name of ["eval", "Function"]) Object.defineProperty(global, name, { value: refuse, configurable: false });
    for (const name of ["read", "readbuffer", "load", "sealImports"]) delete global[name];
  };

  const readAttribute = (module, name) => {
    const toPointer = (text) => {
      const bytes = new TextEncoder().encode(text + "\\0");
      const place = module._malloc(bytes.length);
      module.HEAPU8.set(bytes, place);
      return place;
    };
    return module._PyObject_GetAttrString(module._PyImport_AddModule(toPointer("__main__")), toPointer(name));
  };

  const load = async (create, indexURL, lockFileContents, setup, snapshotSize, makeSnapshot) => {
    let snapshot;
    if (snapshotSize > 0) {
      snapshot = new Uint8Array(snapshotSize);
      fill("snapshot", snapshot);
    }
    const pyodide = await global.loadPyodide({
      indexURL,
      createPyodideModule: create,
      jsglobals: {},
      lockFileContents,
      env: { HOME: "/home/user", PYTHONINSPECT: "" },
      ...(makeSnapshot ? { _makeSnapshot: true } : {}),
      ...(snapshot ? { _loadSnapshot: snapshot } : {}),
    });
    if (makeSnapshot) {
      pyodide.runPython(setup);
      const made = pyodide.makeMemorySnapshot();
      return { size: made.length, copyTo: (target) => host.take(made, target) };
    }
    const { FS, _module: module } = pyodide;
    const { limitPipe, forget } = limitFiles(pyodide);
    const fds = pyodide.runPython("import os as _os\\n_fds = _os.pipe()\\n_fds[0]");
    limitPipe(FS.streams[fds]);
    pyodide.runPython("[_os.close(fd) for fd in _fds]\\ndel _os, _fds");
    const decoder = new TextDecoder();
    let pending = [];
    const write = (bytes) => {
      // Whole characters only: the last few bytes may be the start of one.
      const all = pending.length > 0 ? Uint8Array.from([...pending, ...bytes]) : bytes;
      let end = all.length;
      for (let back = 1; back <= 3 && back <= all.length; back++) {
        const byte = all[all.length - back];
        if (byte >= 0xc0) {
          if (back < (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2)) end = all.length - back;
          break;
        }
        if (byte < 0x80) break;
      }
      pending = [...all.subarray(end)];
      print(decoder.decode(all.subarray(0, end)));
      return bytes.length;
    };
    pyodide.setStdout({ write });
    pyodide.setStderr({ write });
    let input = new Uint8Array(0);
    pyodide.setStdin({
      read: (target) => {
        const part = input.subarray(0, target.length);
        target.set(part);
        input = input.subarray(part.length);
        return part.length;
      },
    });
    pyodide.runPython("_cria_main = _cria_take_main()");
    const main = readAttribute(module, "_cria_main");
    pyodide.runPython("del _cria_main, _cria_take_main");
    sealRealm();
    isSealed = true;
    isMarked = false;
    forget();
    const pristine = module.HEAPU8.slice();
    const restoreFiles = recordFiles(FS);
    const readState = () => module.wasmTable.length + ":" + module._emscripten_stack_get_current();
    const state = readState();
    let hasEnded = true;
    // Memory cannot shrink, so a large program's memory goes with its realm.
    const longest = pristine.length + 64 * 2 ** 20;
    return {
      run: (code, seed, stdin) => {
        input = new TextEncoder().encode(stdin);
        hasEnded = false;
        const error = callPython(module, main, code, seed);
        hasEnded = true;
        return error ?? "";
      },
      /** False when some change cannot be undone: then only a new realm will do. */
      restore: () => {
        const { HEAPU8 } = module;
        if (!hasEnded || isMarked || readState() !== state || HEAPU8.length > longest) return false;
        HEAPU8.set(pristine);
        HEAPU8.fill(0, pristine.length);
        restoreFiles();
        forget();
        pending = [];
        return true;
      },
    };
  };
  return { load };
})`;
