-- Stores what was learnt of the pace of hosts. ARGV: token, epoch, pairs of host and value; an empty value is forgotten.
if not owns(ARGV[1], ARGV[2]) then return FENCED end
for at = 3, #ARGV, 2 do
  if ARGV[at + 1] == '' then
    redis.call('HDEL', PACE, ARGV[at])
  else
    redis.call('HSET', PACE, ARGV[at], ARGV[at + 1])
  end
end
return 1
