-- Returns leased requests to the queue, some at a time. ARGV: token, epoch. Returns how many are left, version and queue, and how many were returned.
if not owns(ARGV[1], ARGV[2]) then return FENCED end
local page = redis.call('HSCAN', LEASES, '0', 'COUNT', '500')[2]
for at = 1, #page, 2 do
  redis.call('HDEL', LEASES, page[at])
  restore(page[at + 1])
end
local version, queued = finish()
return {redis.call('HLEN', LEASES), version, queued, #page / 2}
