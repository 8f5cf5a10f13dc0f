-- What all scripts begin with. KEYS[1] is the hash `own` of a partition; the names of its other keys begin as that name does.
local own = KEYS[1]
local base = string.sub(own, 1, -4)
local HOSTS, LEASES, OUTBOX = base .. 'hosts', base .. 'l', base .. 'o'
-- Replies to calls of this owner and of the one before, by its token and the number of the call.
local OPS, LAST_OPS = base .. 'ops', base .. 'ops1'
local WOKEN, PACE, MARKS = base .. 'w', base .. 'pace', base .. 'm'
-- How long a node waits before it asks again whether the owner of a host has heard of a mark, in microseconds.
local SOON = 100000
-- The greatest whole number that Lua counts exactly.
local LAST = 9007199254740991

-- Stands before a request that is queued although it is known; no stored request begins with it.
local KNOWN = '\255'

local function int(number)
  -- A zero with a sign would be no number for Redis.
  if number == 0 then return '0' end
  return string.format('%.0f', number)
end

-- Microseconds since 1970, by the clock of the server.
local function now()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000000 + tonumber(time[2])
end

local function owns(token, epoch)
  local found = redis.call('HMGET', own, 'token', 'epoch', 'until')
  return found[1] == token and found[2] == epoch and now() < tonumber(found[3] or '0')
end

local FENCED = redis.error_reply('FENCED another node may own the partition')

local function long(number)
  return struct.pack('>I4I4', math.floor(number / 4294967296), number % 4294967296)
end

-- The change of the number of queued requests, and when the first request of each changed host was due before.
local delta, touched, changed = 0, {}, {}

local function touch(host)
  if touched[host] == nil then
    local at = redis.call('ZSCORE', HOSTS, host)
    touched[host] = at and tonumber(at) or math.huge
    changed[#changed + 1] = host
  end
end

-- Queues a packed request; returns false if it is known. The target of a redirect from another partition is queued even then, marked as
-- known: the node that asked is told nothing, and the one that leases it records where the redirect led.
local function offer(packed)
  local flags, bucket, print, rank, high, low, host, row = struct.unpack('>BI4Bc0c13I4I4I4c0I4c0', packed)
  if flags % 2 == 0 and redis.call('SADD', base .. 's:' .. bucket, print) == 0 then
    if flags % 16 < 8 then return false end
    row = KNOWN .. row
  end
  local sequence = redis.call('HINCRBY', own, 'seq', 1)
  if flags % 4 >= 2 then
    sequence = LAST - sequence
  end
  local place = rank .. long(sequence)
  touch(host)
  redis.call('HSET', base .. 'r:' .. host, place, row)
  if flags % 8 >= 4 then
    redis.call('ZADD', base .. 'd:' .. host, int(high * 4294967296 + low), place)
  else
    redis.call('ZADD', base .. 'q:' .. host, '0', place)
  end
  delta = delta + 1
  return true
end

-- Returns a leased request to its place.
local function restore(held)
  local length = struct.unpack('>I4', held)
  local host, place = string.sub(held, 5, 4 + length), string.sub(held, 5 + length, 25 + length)
  touch(host)
  redis.call('HSET', base .. 'r:' .. host, place, string.sub(held, 26 + length))
  redis.call('ZADD', base .. 'q:' .. host, '0', place)
  delta = delta + 1
end

-- Brings hosts and counters up to date. Returns the version of the partition, the number of queued requests, and the hosts whose first
-- request is due earlier than before.
local function finish()
  local woken = {}
  for _, host in ipairs(changed) do
    local at = math.huge
    if redis.call('ZCARD', base .. 'q:' .. host) > 0 then
      at = 0
    else
      local first = redis.call('ZRANGE', base .. 'd:' .. host, 0, 0, 'WITHSCORES')
      if first[2] then at = tonumber(first[2]) end
    end
    if at == math.huge then
      redis.call('ZREM', HOSTS, host)
    elseif at ~= touched[host] then
      redis.call('ZADD', HOSTS, int(at), host)
    end
    if at < touched[host] then woken[#woken + 1] = host end
  end
  local version = redis.call('HINCRBY', own, 'v', 1)
  return version, redis.call('HINCRBY', own, 'queued', int(delta)), woken
end

