-- Stores what was learnt about hosts. ARGV: token, epoch, `pace` or `notes`, pairs of field and value; an empty value is forgotten.
if not owns(ARGV[1], ARGV[2]) then return FENCED end
local key = base .. ARGV[3]
for at = 4, #ARGV, 2 do
  if ARGV[at + 1] == '' then
    redis.call('HDEL', key, ARGV[at])
  else
    redis.call('HSET', key, ARGV[at], ARGV[at + 1])
  end
end
return 1
