-- Queues requests. ARGV: source, token of the caller if it owns the partition, pairs of number and packed request. Numbers of a source ascend, and what has a
-- number that was taken is passed over, so that a second call changes nothing; it gets the reply of the first.
local source, token, last = ARGV[1], ARGV[2], ARGV[#ARGV - 1]
local taken = redis.call('HGET', base .. 'in', source)
if taken == last then
  return cmsgpack.unpack(redis.call('HGET', base .. 'replies', source))
end
taken = tonumber(taken or '0')
local accepted, duplicates = 0, 0
for at = 3, #ARGV, 2 do
  if tonumber(ARGV[at]) > taken then
    if offer(ARGV[at + 1]) then accepted = accepted + 1 else duplicates = duplicates + 1 end
  end
end
local version, queued, woken = finish()
if redis.call('HGET', own, 'token') ~= token then
  -- The owner is told with its next beat.
  for _, host in ipairs(woken) do redis.call('ZADD', WOKEN, version, host) end
end
local reply = {accepted, duplicates, version, queued, woken}
if tonumber(last) > taken then
  redis.call('HSET', base .. 'in', source, last)
  redis.call('HSET', base .. 'replies', source, cmsgpack.pack(reply))
end
return reply
