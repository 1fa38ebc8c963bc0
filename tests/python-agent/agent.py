"""An agent with a calculator, of Python's standard library: the policy's endpoint, and nothing of Cria."""

import json
import os
import re
import sys
import urllib.request

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "calculator",
            "description": "Computes.",
            "parameters": {"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]},
        },
    }
]


def post(url, body):
    headers = {"content-type": "application/json", "authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as response:
        return json.load(response)


def calculate(arguments):
    try:
        expression = json.loads(arguments)["expression"]
        if not re.fullmatch(r"[-+*/. ()\d]{1,40}", expression) or "**" in expression:
            return "error: not an expression"
        return f"{eval(expression):g}"
    except Exception as error:
        return f"error: {error}"


row = json.load(sys.stdin)
messages = row["prompt"]
for _ in range(3):
    body = {"model": os.environ["CRIA_MODEL"], "messages": messages, "tools": TOOLS}
    answer = post(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body)["choices"][0]["message"]
    messages.append(answer)
    if not answer.get("tool_calls"):
        break
    for call in answer["tool_calls"]:
        content = calculate(call["function"]["arguments"])
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})

said = (messages[-1].get("content") or "").split("####")[-1].strip()
reward = int(said == row["ground_truth"])
if row["extra_info"]["report"] == "post":
    post(os.environ["CRIA_SESSION_URL"] + "/reward", {"reward": reward})
else:
    print(json.dumps({"reward": reward, "asked": sum(message["role"] == "assistant" for message in messages)}))
