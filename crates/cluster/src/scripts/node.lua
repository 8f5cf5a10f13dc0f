-- Enters a node into the list of a job, or renews it there. KEYS: list of nodes, meta data of the job. ARGV: name, token, time for which it
-- counts in microseconds, what it tells. Returns how long the name is still taken by another process, the time, what the operator wants,
-- and all nodes.
local found = redis.call('HGET', KEYS[1], ARGV[1])
local time = now()
if found then
  local node = cjson.decode(found)
  if node.token ~= ARGV[2] and tonumber(node['until']) > time then
    return {int(tonumber(node['until']) - time), int(time), '', {}}
  end
end
redis.call('HSET', KEYS[1], ARGV[1],
  cjson.encode({token = ARGV[2], ['until'] = int(time + tonumber(ARGV[3])), told = ARGV[4]}))
return {'0', int(time), redis.call('HGET', KEYS[2], 'control') or '', redis.call('HGETALL', KEYS[1])}
