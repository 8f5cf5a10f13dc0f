-- Takes a partition that nobody owns. ARGV: token, length of the lease in microseconds, name of the node. Returns the epoch, and 1 if the
-- last owner has told when it last sent a request to each host; or -1 and the time until which another node owns it.
local found = redis.call('HMGET', own, 'token', 'epoch', 'until', 'told')
local time, ends = now(), tonumber(found[3] or '0')
if time < ends and found[1] ~= ARGV[1] then return {-1, int(ends - time)} end
local epoch = tonumber(found[2] or '0')
if time >= ends then
  epoch = redis.call('HINCRBY', own, 'epoch', 1)
  redis.call('DEL', LAST_OPS, WOKEN)
  -- The last owner may still ask for replies that it did not get.
  if redis.call('EXISTS', OPS) == 1 then redis.call('RENAME', OPS, LAST_OPS) end
  redis.call('HDEL', own, 'heard')
  redis.call('HINCRBY', own, 'v', 1)
end
redis.call('HSET', own, 'token', ARGV[1], 'until', int(time + tonumber(ARGV[2])), 'node', ARGV[3])
return {epoch, tonumber(found[4] or '-1') == epoch - 1 and 1 or 0}
