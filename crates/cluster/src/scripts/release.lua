-- Gives a partition back. ARGV: token, epoch, 1 if even with leases. Returns 1 if it was done.
if not owns(ARGV[1], ARGV[2]) then return 0 end
if ARGV[3] ~= '1' and redis.call('HLEN', LEASES) > 0 then return 0 end
redis.call('HSET', own, 'token', '', 'until', '0', 'node', '')
return 1
