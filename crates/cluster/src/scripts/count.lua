-- The state of a partition: version, queued, leased, in the outbox, settled, the node that owns it.
local found = redis.call('HMGET', own, 'v', 'queued', 'settled', 'node', 'until')
local node = now() < tonumber(found[5] or '0') and found[4] or ''
return {
  tonumber(found[1] or '0'), tonumber(found[2] or '0'), redis.call('HLEN', LEASES), redis.call('LLEN', OUTBOX),
  tonumber(found[3] or '0'), node
}
