-- Ends leases and queues what was found. ARGV: token, epoch, number of the call, number of calls whose replies have arrived, those calls;
-- then for each lease: its number, D (done), L (back to its place) or R (replaced), the replacement, the number of requests that were
-- found, and those. A request is a partition, empty for this one, and the packed request. A second call gets the reply of the first, even if
-- the partition has another owner by then: while a replica takes over, a lease may end. The last number of the reply says how many leases
-- had ended before.
local function name(number) return ARGV[1] .. number end
local stored = redis.call('HGET', OPS, name(ARGV[3])) or redis.call('HGET', LAST_OPS, name(ARGV[3]))
if stored then return cmsgpack.unpack(stored) end
if not owns(ARGV[1], ARGV[2]) then return FENCED end
local at = 4
local function take()
  at = at + 1
  return ARGV[at]
end
for _ = 1, tonumber(ARGV[4]) do redis.call('HDEL', OPS, name(take())) end
local accepted, duplicates, refused, index, settled, void = 0, 0, {}, 0, 0, 0
local function send(target, packed)
  local number = redis.call('HINCRBY', own, 'sent', 1)
  redis.call('RPUSH', OUTBOX, long(number) .. struct.pack('>I4', tonumber(target)) .. packed)
end
while at < #ARGV do
  local id, kind = take(), take()
  local target, packed
  if kind == 'R' then target, packed = take(), take() end
  local held = redis.call('HGET', LEASES, id)
  -- A lease that is no longer out was settled before.
  if held then
    redis.call('HDEL', LEASES, id)
    if kind == 'L' then
      restore(held)
    else
      settled = settled + 1
      if kind == 'R' then
        if target ~= '' then
          send(target, packed)
        elseif offer(packed) then
          accepted = accepted + 1
        else
          refused[#refused + 1] = index
        end
      end
    end
  else
    void = void + 1
  end
  index = index + 1
  for _ = 1, tonumber(take()) do
    target, packed = take(), take()
    if target ~= '' then
      send(target, packed)
    elseif offer(packed) then
      accepted = accepted + 1
    else
      duplicates = duplicates + 1
    end
  end
end
redis.call('HINCRBY', own, 'settled', settled)
local version, queued, woken = finish()
local reply = {accepted, duplicates, version, queued, woken, refused, redis.call('LLEN', OUTBOX), void}
redis.call('HSET', OPS, name(ARGV[3]), cmsgpack.pack(reply))
return reply
