#!/bin/sh
# Crawls a site with three nodes on this machine, over a Redis server that ends with the crawl.
#
#   sh examples/cluster.sh https://example.org/ --max-depth 3
#
# It needs the programs huntsman (or its path in HUNTSMAN), redis-server and redis-cli. The records are in three-nodes/n1, n2 and n3.
# On three machines it is the same: one server that all of them reach, and one of the three commands on each.
set -eu

huntsman=${HUNTSMAN:-huntsman}
mkdir -p three-nodes/server

# A server that answers after its log is on the disk, on the first free port of some.
for port in 6390 6391 6392 6393 6394 6395 6396 6397 6398 6399; do
    redis-server --port "$port" --bind 127.0.0.1 --dir "$PWD/three-nodes/server" --logfile server.log \
        --appendonly yes --appendfsync always --maxmemory-policy noeviction --save "" &
    server=$!
    # If the port is taken, the server ends, and another one may answer there.
    while kill -0 "$server" 2>/dev/null && ! redis-cli -p "$port" ping >/dev/null 2>&1; do sleep 0.1; done
    sleep 0.2
    if kill -0 "$server" 2>/dev/null; then break; fi
    server=
done
[ -n "$server" ] || { echo "redis-server does not start: see three-nodes/server/server.log" >&2; exit 1; }
nodes=
trap 'kill $nodes $server 2>/dev/null || true; wait' EXIT INT TERM

# Three nodes of one crawl. Each is given the same start URLs, which are fetched once.
for node in n1 n2 n3; do
    "$huntsman" crawl "$@" --frontier "redis://127.0.0.1:$port" --job three-nodes --node "$node" --out "three-nodes/$node" &
    nodes="$nodes $!"
done
failed=0
for node in $nodes; do wait "$node" || failed=1; done
nodes=

"$huntsman" cluster status --frontier "redis://127.0.0.1:$port" --job three-nodes
echo "pages: $(cat three-nodes/n?/pages.jsonl | wc -l)"
exit "$failed"
