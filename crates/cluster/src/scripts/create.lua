-- Makes a job if there is none. KEYS: its meta data. ARGV: pairs of field and value; none to look only. Returns its meta data.
if #ARGV > 0 and redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('HSET', KEYS[1], unpack(ARGV))
end
return redis.call('HGETALL', KEYS[1])
