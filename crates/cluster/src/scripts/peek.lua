-- The next requests of a host. ARGV: host, greatest number. Returns the length of its queue, and the requests.
local host, most = ARGV[1], tonumber(ARGV[2])
local queue, delayed, rows = base .. 'q:' .. host, base .. 'd:' .. host, base .. 'r:' .. host
local found = {}
for _, places in ipairs({queue, delayed}) do
  if #found < most then
    for _, place in ipairs(redis.call('ZRANGE', places, 0, most - #found - 1)) do
      found[#found + 1] = redis.call('HGET', rows, place) or ''
    end
  end
end
return {redis.call('ZCARD', queue) + redis.call('ZCARD', delayed), found}
