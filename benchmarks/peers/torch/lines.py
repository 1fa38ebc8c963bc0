"""A process that answers one JSON line with one JSON line."""
import json
import sys
import traceback


def serve(handlers):
    """Each line is {"do": name, ...}; the handler gets the rest as keywords. {"error"} when it raises."""
    # Only answers go to standard output.
    output, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = handlers[request.pop("do")](**request)
        except Exception:
            answer = {"error": traceback.format_exc()}
        output.write(json.dumps(answer) + "\n")
        output.flush()
