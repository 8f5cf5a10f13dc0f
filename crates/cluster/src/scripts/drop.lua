-- Drops queued requests of a host, some at a time. ARGV: host. They stay known. Returns how many were dropped, and how many are left.
local host = ARGV[1]
touch(host)
local dropped = 0
for _, places in ipairs({base .. 'q:' .. host, base .. 'd:' .. host}) do
  for _, place in ipairs(redis.call('ZRANGE', places, 0, 999)) do
    redis.call('ZREM', places, place)
    redis.call('HDEL', base .. 'r:' .. host, place)
    dropped = dropped + 1
  end
end
delta = delta - dropped
if dropped > 0 then finish() end
return {dropped, redis.call('ZCARD', base .. 'q:' .. host) + redis.call('ZCARD', base .. 'd:' .. host)}
