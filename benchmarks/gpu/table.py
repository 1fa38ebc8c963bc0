"""Lines of JSON of all steps -> one table in Markdown on standard output; exit code 1 when a check failed or is missing.
    table.py {results.jsonl}"""
import json
import sys

lines = []
for text in open(sys.argv[1]):
    if text.startswith("{"):
        lines.append(json.loads(text))


def number(value):
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


checks = [line for line in lines if "ok" in line]
failed = [line for line in checks if not line["ok"]] + [line for line in lines if "error" in line and "ok" not in line]
print(f"checks: {len(checks) - sum(not c['ok'] for c in checks)} of {len(checks)} passed")
for line in failed:
    print(f"FAILED {json.dumps(line)}")
for line in lines:
    if "skipped" in line:
        print(f"not measured: {line['skipped']}")

print("\n| case | metric | ours | peer |\n|---|---|---|---|")
peers = {line["case"]: line for line in lines if "peer" in line}
for line in lines:
    if "ours" in line:
        peer = peers.get(line["case"])
        beside = f"{peer['peer']}: {number(peer['value'])} (ratio {number(line['ours'] / peer['value'])})" if peer else ""
        print(f"| {line['case']} | {line['metric']} | {number(line['ours'])} | {beside} |")
    elif "kernel" in line and "ms" in line:
        print(f"| kernel {line['kernel']} | ms ({line['unit']}) | {line['ms']:.3f} ({number(line['rate'])}) | |")
sys.exit(1 if failed or not checks else 0)
