-- Renews the lease of a partition. ARGV: token, epoch, length of the lease in microseconds, version up to which the owner knows which hosts
-- others have woken, number of the last mark of a host that it knows. Returns the state of the partition, the hosts that were woken since, with
-- versions, the number of the last mark, and the hosts that are marked because other nodes ask them, too.
if not owns(ARGV[1], ARGV[2]) then return FENCED end
redis.call('HSET', own, 'until', int(now() + tonumber(ARGV[3])))
redis.call('ZREMRANGEBYSCORE', WOKEN, '-inf', ARGV[4])
redis.call('HSET', own, 'heard', ARGV[5])
local found = redis.call('HMGET', own, 'v', 'queued', 'marks')
local marked, marks, time = {}, redis.call('HGETALL', MARKS), now()
for at = 1, #marks, 2 do
  if tonumber(string.match(marks[at + 1], '%d+ (%d+)')) > time then
    marked[#marked + 1] = marks[at]
  else
    redis.call('HDEL', MARKS, marks[at])
  end
end
return {
  tonumber(found[1] or '0'), tonumber(found[2] or '0'), redis.call('HLEN', LEASES), redis.call('LLEN', OUTBOX),
  redis.call('ZRANGE', WOKEN, 0, 1999, 'WITHSCORES'), tonumber(found[3] or '0'), marked
}
