-- Removes requests from the outbox that their partitions have. ARGV: token, epoch, number of the last of them. Returns how many are left.
if not owns(ARGV[1], ARGV[2]) then return FENCED end
local head = redis.call('LINDEX', OUTBOX, 0)
if head then
  local high, low = struct.unpack('>I4I4', head)
  local count = tonumber(ARGV[3]) - (high * 4294967296 + low) + 1
  if count > 0 then
    redis.call('LTRIM', OUTBOX, int(count), -1)
    redis.call('HINCRBY', own, 'v', 1)
  end
end
return redis.call('LLEN', OUTBOX)
