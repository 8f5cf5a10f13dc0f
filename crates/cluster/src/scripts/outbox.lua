-- The first requests in the outbox. ARGV: token, epoch, greatest number. It writes, so that a caller who waits for replicas waits for these
-- requests, too: a request that is not on the replica may get another number when a replica takes over.
if not owns(ARGV[1], ARGV[2]) then return FENCED end
redis.call('HINCRBY', own, 'v', 0)
return redis.call('LRANGE', OUTBOX, 0, tonumber(ARGV[3]) - 1)
