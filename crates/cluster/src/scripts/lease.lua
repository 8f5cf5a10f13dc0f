-- Leases due requests of a host. ARGV: token, epoch, host, number of the first lease, greatest number of leases, time. A second call finds
-- its leases and replies as the first did. A leased request is its number in the partition, with which its place ends, and the request.
if not owns(ARGV[1], ARGV[2]) then return FENCED end
local host, first, max = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local queue, delayed, rows = base .. 'q:' .. host, base .. 'd:' .. host, base .. 'r:' .. host
local leased, moved = {}, 0
if max > 0 and redis.call('HEXISTS', LEASES, ARGV[4]) == 1 then
  for id = first, first + max - 1 do
    local held = redis.call('HGET', LEASES, int(id))
    if not held then break end
    leased[#leased + 1] = string.sub(held, 18 + struct.unpack('>I4', held))
  end
else
  touch(host)
  for _, place in ipairs(redis.call('ZRANGEBYSCORE', delayed, '-inf', ARGV[6])) do
    redis.call('ZADD', queue, '0', place)
    redis.call('ZREM', delayed, place)
    moved = moved + 1
  end
  local places = max > 0 and redis.call('ZRANGE', queue, 0, max - 1) or {}
  for at, place in ipairs(places) do
    local row = redis.call('HGET', rows, place) or ''
    redis.call('HSET', LEASES, int(first + at - 1), struct.pack('>I4', #host) .. host .. place .. row)
    redis.call('HDEL', rows, place)
    redis.call('ZREM', queue, place)
    leased[at] = string.sub(place, 14) .. row
  end
  moved = moved + #places
  delta = delta - #places
end
local version, queued
if moved > 0 then
  version, queued = finish()
else
  local found = redis.call('HMGET', own, 'v', 'queued')
  version, queued = tonumber(found[1] or '0'), tonumber(found[2] or '0')
end
local next_at = redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')[2] or ''
return {version, queued, redis.call('ZCARD', queue), next_at, leased}
