-- KEYS[1] the key; KEYS[2] its flag, which is there while somebody is in its queue;
-- ARGV[1] a value; ARGV[2] the end of the channel on which holders hear of locks that are
-- broken, which on a Cluster is in the key's slot; ARGV[3] what to say there; ARGV[4] '1' to
-- delete the key also if it does not expire.
-- Deletes the key if it has that value, and says so: 1, or 2 if that has woken somebody.
-- Otherwise leaves it alone: 0. If the queue has more of the dead than one script removes: 4
-- above that. What is said is a digest: to hear the value would be to
-- have the right to release the lock on the nodes that still have it.
--
-- The holder hears of it before the next in the queue does. Our user may not be permitted
-- to tell either: the key is gone all the same.
local held = redis.pcall('GET', KEYS[1])
-- A key of another type is somebody else's too; any other error is an error.
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
  redis.pcall(publish, 'redlock:wake:' .. ARGV[2], ARGV[3])
end
if redis.call('DEL', KEYS[2]) == 0 then
  return deleted
end

--include wake.lua

local queue = string.gsub(KEYS[2], 'redlock:queued:', 'redlock:queue:', 1)
local permitted, who = pcall(wake, queue, KEYS[2], '')
if permitted and who then
  redis.call('SET', KEYS[2], '1', 'PX', math.max(redis.call('PTTL', queue), 1000))
  deleted = deleted * 2
end
if more then
  return deleted + 4
end
return deleted
