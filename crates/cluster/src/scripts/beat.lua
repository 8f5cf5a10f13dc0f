-- Renews the lease of a partition. ARGV: token, epoch, length of the lease in microseconds, version up to which the owner knows which hosts
-- others have woken. Returns the state of the partition, and the hosts that were woken since, with versions.
if not owns(ARGV[1], ARGV[2]) then return FENCED end
redis.call('HSET', own, 'until', int(now() + tonumber(ARGV[3])))
redis.call('ZREMRANGEBYSCORE', WOKEN, '-inf', ARGV[4])
local found = redis.call('HMGET', own, 'v', 'queued')
return {
  tonumber(found[1] or '0'), tonumber(found[2] or '0'), redis.call('HLEN', LEASES), redis.call('LLEN', OUTBOX),
  redis.call('ZRANGE', WOKEN, 0, 1999, 'WITHSCORES')
}
