-- Hosts with queued requests. ARGV: index of the first and of the last. For each: name, number of requests, what was learnt of its pace.
local reply = {}
for _, host in ipairs(redis.call('ZRANGE', HOSTS, ARGV[1], ARGV[2])) do
  reply[#reply + 1] = host
  reply[#reply + 1] = redis.call('ZCARD', base .. 'q:' .. host) + redis.call('ZCARD', base .. 'd:' .. host)
  reply[#reply + 1] = redis.call('HGET', PACE, host) or ''
end
return reply
