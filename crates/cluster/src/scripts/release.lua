-- Gives a partition back. ARGV: token, epoch, 1 if even with leases, 1 if it is stored when each host got its last request. Returns 1 if it
-- was done.
if not owns(ARGV[1], ARGV[2]) then return 0 end
if ARGV[3] ~= '1' and redis.call('HLEN', LEASES) > 0 then return 0 end
-- The epoch says which owner has told it: what an owner told that died later is outdated.
if ARGV[4] == '1' then redis.call('HSET', own, 'told', ARGV[2]) end
redis.call('HSET', own, 'token', '', 'until', '0', 'node', '')
return 1
