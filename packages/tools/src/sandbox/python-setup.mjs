/**
 * Python that runs before the snapshot is made: the imports of most programs, and the runner of a program. The runner
 * works like a script, except that it shows the value of a last expression, as a notebook does; `await` at the top
 * level works.
 */
export const SETUP = `
import __main__, ast, asyncio, gc, inspect, io, linecache, os, random, sys, time, traceback
from asyncio import events
import collections, functools, itertools, json, math, re, string, statistics, datetime, decimal, fractions, typing

def _cria_take_main():
    import __main__, ast, asyncio, gc, inspect, io, linecache, os, random, sys, time, traceback
    from asyncio import events

    class _Loop(asyncio.BaseEventLoop):
        """An event loop without sockets: waiting is sleeping."""

        def __init__(self):
            super().__init__()
            self._selector = self

        def select(self, timeout):
            if timeout is None:
                raise RuntimeError("deadlock: a coroutine awaits a result that never comes")
            time.sleep(timeout)
            return []

        def _process_events(self, events):
            pass

        def _write_to_self(self):
            pass

    def run_coroutine(main, *, debug=None, loop_factory=None):
        with asyncio.runners.Runner(debug=debug, loop_factory=loop_factory or _Loop) as runner:
            return runner.run(main)

    events.new_event_loop = asyncio.new_event_loop = _Loop
    asyncio.run = run_coroutine
    events._set_running_loop(None)
    # The bridge to JavaScript is not part of the language.
    sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != "JsFinder"]
    for name in list(sys.modules):
        if name.split(".")[0] in ("js", "pyodide_js", "pyodide", "_pyodide", "_pyodide_core", "micropip", "pyodide_console"):
            del sys.modules[name]
    space = __main__.__dict__
    for name in ("collections", "functools", "itertools", "json", "math", "re", "string", "statistics", "datetime",
                 "decimal", "fractions", "typing", "pyodide", "_pyodide", "ast", "asyncio", "gc", "inspect", "io", "linecache", "os",
                 "random", "sys", "time", "traceback", "events", "__main__"):
        space.pop(name, None)
    os.makedirs("/home/user", exist_ok=True)
    os.chdir("/home/user")
    sys.path[:] = ["/home/user", *[path for path in sys.path if path]]
    umask = os.umask(0o022)
    os.umask(umask)
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT

    def execute(code):
        value = eval(code, space)
        return asyncio.run(value) if code.co_flags & inspect.CO_COROUTINE else value

    def run(source):
        linecache.cache["main.py"] = (len(source), None, source.splitlines(True), "main.py")
        tree = compile(source, "main.py", "exec", flags | ast.PyCF_ONLY_AST)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        if tree.body:
            execute(compile(tree, "main.py", "exec", flags))
        if last is not None:
            value = execute(compile(ast.Expression(last.value), "main.py", "eval", flags))
            if value is not None:
                print(repr(value))

    def main(source, seed):
        random.seed(int(seed) if seed >= 0 else None)
        os.umask(umask)
        error = None
        try:
            run(source)
        except SystemExit as exit:
            if exit.code not in (None, 0):
                error = f"SystemExit: {exit.code}"
        except BaseException as raised:
            # From the first frame of the program on; a syntax error has none.
            frames = raised.__traceback__
            while frames and frames.tb_frame.f_code.co_filename != "main.py":
                frames = frames.tb_next
            try:
                error = "".join(traceback.format_exception(type(raised), raised, frames, limit=20)).strip()
            except BaseException:
                error = type(raised).__name__
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except BaseException:
            pass
        return error if error is None or len(error) < 4000 else error[:2000] + "\\n...\\n" + error[-2000:]

    # Freezes the objects that exist now, so that no search through all objects finds them.
    gc.collect()
    gc.freeze()
    return main
`;
