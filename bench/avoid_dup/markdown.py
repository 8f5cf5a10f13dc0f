#!/usr/bin/env python3
"""Tables in Markdown from what `cargo run --release -p huntsman-bench -- avoid-dup --json` prints, for made-up sites or for real ones.

usage: cargo run --release -p huntsman-bench -- avoid-dup --json | markdown.py
       for each site: cargo run --release -p huntsman-bench -- avoid-dup --site URL --truth FILE --json; all lines | markdown.py
"""
import json, sys


def spread(runs, key, show):
    values = sorted(run[key] for run in runs if run[key] is not None)
    if not values:
        return "-"
    least, most = show(values[0]), show(values[-1])
    return least if least == most else f"{least}-{most}"


def two(value):
    return f"{value:.2f}"


def percent(value, digits=1):
    return "-" if value is None else f"{100 * value:.{digits}f} %"


def cases(result):
    print(f"Seeds {', '.join(map(str, result['seeds']))}; {result['build']} build.\n")
    print("| case | in flight | URLs / contents | recall | lost | skipped | own estimate | reference: recall | lost | skipped |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for row in result["cases"]:
        cells = [row["about"], str(row["in_flight"]), f"{row['requests']:,.0f} / {row['contents']:,.0f}"]
        for mode in "default", "reference":
            runs = row[mode]["runs"]
            cells += [spread(runs, "recall", two), spread(runs, "lost", "{:,}".format), spread(runs, "skipped", "{:,}".format)]
            if mode == "default":
                loss, most = row[mode]["estimated_loss"], row[mode]["estimated_loss_most"]
                cells.append("-" if loss is None else f"{percent(loss)} (< {percent(most)})")
        print("| " + " | ".join(cells) + " |")


def sites(results):
    print("| site | pages / contents | could be saved | saved | lost | own estimate | reference: saved | lost |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for result in results:
        view = result["view"]
        first = next(result[mode] for mode in ("default", "reference") if mode in result)
        score = first["runs"][0][view]
        cells = [result["site"], f"{score['pages']:,} / {score['contents']:,}", percent(score["possible"])]
        for mode in "default", "reference":
            of = result.get(mode)
            cells += [percent(of["saved"]), f"{of['lost']:.0f} ({percent(of['lost_share'], 2)})"] if of else ["-", "-"]
            if mode == "default":
                loss, most = (of["estimated_loss"], of["estimated_loss_most"]) if of else (None, None)
                cells.append("-" if loss is None else f"{percent(loss)} (< {percent(most)})")
        print("| " + " | ".join(cells) + " |")


def main():
    results = [json.loads(line) for line in sys.stdin if line.strip()]
    for result in results:
        if "cases" in result:
            cases(result)
    real = [result for result in results if "site" in result]
    if real:
        sites(real)


if __name__ == "__main__":
    main()
