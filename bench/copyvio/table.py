#!/usr/bin/env python3
"""Pairs of lines of JSON on stdin (earwigbot, huntsman) to a table in Markdown; an error if the confidences differ."""
import json, statistics, sys

WHOLE = "two texts to a confidence"
PREPARED = "source against a prepared article, after hashing"
runs = [json.loads(line) for line in sys.stdin]
ratios = []
print(f"| texts | C | {runs[0]['name']}: us | huntsman {runs[1]['version']}: us | ratio | both prepared: us | us | ratio |")
print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
for theirs, run in zip(runs[::2], runs[1::2]):
    ours = run["speed"]
    us = {step["name"]: step["us"] for step in ours["steps"]}
    if abs(theirs["confidence"] - ours["confidence"]) > 1e-9:
        sys.exit(f"confidence {theirs['confidence']} and {ours['confidence']}: not the same work")
    whole, prepared = theirs["whole_us"] / us[WHOLE], theirs["prepared_us"] / us[PREPARED]
    ratios.append(whole)
    print(f"| {ours['words'][0]:,} and {ours['words'][1]:,} words | {ours['confidence']:.6f} | {theirs['whole_us']:,.0f} | {us[WHOLE]:,.0f} "
          f"| {whole:.1f} | {theirs['prepared_us']:,.0f} | {us[PREPARED]:,.0f} | {prepared:.1f} |")
print(f"\nFrom two texts to a confidence: {min(ratios):.1f} to {max(ratios):.1f} times as fast, {statistics.median(ratios):.1f} in the middle.")
