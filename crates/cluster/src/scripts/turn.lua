-- The next start at a host that several nodes ask. ARGV: token of the caller if it works on the partition, host, delay in microseconds, for
-- how long the host stays marked. Returns how many microseconds to wait; 0 if a request may be sent now.
--
-- A mark says: number, end, and the last start; until the owner has heard of it, no start is known, because the owner does not ask yet.
local host, delay = ARGV[2], tonumber(ARGV[3])
local time = now()
local found = redis.call('HMGET', own, 'token', 'until', 'heard')
local is_owned = time < tonumber(found[2] or '0')
local is_owner = is_owned and found[1] == ARGV[1]
local mark = redis.call('HGET', MARKS, host)
local number, ends, last
if mark then
  number, ends, last = string.match(mark, '(%d+) (%d+) (%d+)')
  number, ends, last = tonumber(number), tonumber(ends), tonumber(last)
end
if is_owner and (not mark or ends <= time) then return 0 end
if not mark or ends <= time then
  number, ends, last = redis.call('HINCRBY', own, 'marks', 1), 0, 0
end
-- What the nodes have learnt of the pace of the host counts for all.
local pace = redis.call('HGET', PACE, host)
local sleeps = 0
if pace then
  local learnt, asleep = struct.unpack('<I8I8', pace)
  local crawl = #pace >= 24 and struct.unpack('<I8', pace, 17) or 0
  delay = math.max(delay, learnt, crawl)
  sleeps = asleep
end
local wait = 0
if is_owner then
  wait = math.max(last > 0 and last + delay - time or 0, sleeps - time, 0)
elseif last == 0 and is_owned and tonumber(found[3] or '0') < number then
  wait = SOON
elseif last == 0 then
  -- The owner may have sent a request just before it heard of the mark.
  last = time
  wait = math.max(delay, 1)
else
  wait = math.max(last + delay - time, sleeps - time, 0)
end
if wait == 0 then last = time end
if not is_owner then ends = time + tonumber(ARGV[4]) end
redis.call('HSET', MARKS, host, int(number) .. ' ' .. int(ends) .. ' ' .. int(last))
return tonumber(int(math.ceil(wait)))
