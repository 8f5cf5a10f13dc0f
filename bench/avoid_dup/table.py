#!/usr/bin/env python3
"""Lines of JSON on stdin to a table in Markdown."""
import json, sys

print("| model | pages | learn us: median, p99 | ask us: median, p99 | KB a page | URL without its session: learn us, ask us |")
print("| --- | ---: | ---: | ---: | ---: | ---: |")
for line in sys.stdin:
    run = json.loads(line)
    learn, ask, without = run["learn_us"], run["ask_us"], run["without_session_us"]
    print(f"| {run['model']} | {run['pages']:,} | {learn['median']:,.0f}, {learn['p99']:,.0f} "
          f"| {ask['median']:,.1f}, {ask['p99']:,.1f} | {run['bytes_per_page'] / 1024:.2f} "
          f"| {without['learn']:,.0f}, {without['ask']:,.1f} |")
