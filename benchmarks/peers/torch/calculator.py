"""The demo's task: tool calls in hermes format, a calculator, the final answer behind ####."""
import json
import re

CALL = re.compile(r"<tool_call>\n(.*?)\n</tool_call>", re.S)
ANSWER = re.compile(r"#### (-?[0-9.]+)\s*$")
SAFE = re.compile(r"^[0-9+\-*/(). ]{1,60}$")


def calculate(expression):
    if not SAFE.match(expression) or "**" in expression or "//" in expression:
        return "error: invalid expression"
    try:
        value = eval(expression, {"__builtins__": {}}, {})
    except Exception:
        return "error: invalid expression"
    if isinstance(value, float):
        value = round(value) if abs(value - round(value)) < 1e-9 else round(value, 2)
    return str(value)


def run_tool(text):
    """What the tool says to a turn's text; None where the turn calls none."""
    match = CALL.search(text)
    if not match:
        return "error: invalid call" if "<tool_call>" in text else None
    try:
        call = json.loads(match.group(1))
        name, expression = call["name"], call["arguments"]["expression"]
    except Exception:
        return "error: invalid call"
    if name != "calculator":
        return "error: unknown tool"
    return calculate(expression) if isinstance(expression, str) else "error: invalid call"


def wrap_result(result):
    """The text between two turns of the assistant."""
    return f"\n<|im_start|>user\n<tool_response>\n{result}\n</tool_response><|im_end|>\n<|im_start|>assistant\n"


def score(text, answer):
    match = ANSWER.search(text)
    return float(bool(match) and match.group(1) == answer)
