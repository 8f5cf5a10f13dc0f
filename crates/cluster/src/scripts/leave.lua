-- Takes a node off the list of a job. KEYS: list of nodes. ARGV: name, token.
local found = redis.call('HGET', KEYS[1], ARGV[1])
if found and cjson.decode(found).token == ARGV[2] then
  return redis.call('HDEL', KEYS[1], ARGV[1])
end
return 0
