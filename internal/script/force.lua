-- Deletes another client's key if it has the given value, notifies its holder, and then wakes the
-- first waiter.
-- KEYS[1] the key; KEYS[2] its flag, which exists while somebody waits; ARGV[1] the value; ARGV[2]
-- the end of the channel on which holders hear of broken locks, which on a Cluster is in the key's
-- slot; ARGV[3] the message to publish there; ARGV[4] '1' to delete also a key that does not
-- expire.
-- Returns as release.lua does.
--
-- The message has a digest of the value. The value itself would give everybody who hears it the
-- means to release the lock on the nodes that still have it.
local held = redis.pcall('GET', KEYS[1])
-- A key of another type is another client's too; any other error is an error.
if type(held) == 'table' and string.sub(held.err, 1, 9) ~= 'WRONGTYPE' then
  return held
end
if held and held ~= ARGV[1] then
  return 0
end
if held and ARGV[4] ~= '1' and redis.call('PTTL', KEYS[1]) < 0 then
  return 0
end
local deleted = 0
if held then
  redis.call('DEL', KEYS[1])
  deleted = 1
  local publish = string.sub(ARGV[2], 1, 1) == '{' and 'SPUBLISH' or 'PUBLISH'
  redis.pcall(publish, 'redlock:wake:' .. ARGV[2], ARGV[3]) -- this user may lack the right to
end
if redis.call('DEL', KEYS[2]) == 0 then
  return deleted
end

--include wake.lua

local queue = string.gsub(KEYS[2], 'redlock:queued:', 'redlock:queue:', 1)
return handOver(queue, KEYS[2], deleted)
