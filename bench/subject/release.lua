-- KEYS[1] the key; KEYS[2] its queue; KEYS[3] the flag, which is there while somebody is
-- in the queue; ARGV[1] our value; if we waited, ARGV[2] our name in the queue and ARGV[3]
-- our ticket: where we did not get the key we may still be in it.
-- Deletes the key if it is ours: 1, or 2 if that has woken somebody. Otherwise leaves it
-- alone: 0.
--
-- To delete the flag with the key tells whether anybody waits at less cost than to look.
local held = redis.pcall('GET', KEYS[1])
local deleted = 0
if held == ARGV[1] then
  if redis.call('DEL', KEYS[1], KEYS[3]) == 1 then
    return 1
  end
  deleted, held = 1, false
elseif held then
  -- A key of another type is somebody else's too; any other error is an error.
  if type(held) == 'table' and string.sub(held.err, 1, 9) ~= 'WRONGTYPE' then
    return held
  end
  if not ARGV[2] then
    return 0
  end
elseif redis.call('DEL', KEYS[3]) == 0 then
  return 0
end

--include wake.lua

-- Our user may not be permitted what those who wait are: the key is gone all the same.
if ARGV[2] then
  pcall(leave, KEYS[2], KEYS[3], ARGV[2], ARGV[3])
end
if held then
  return 0
end
local permitted, who = pcall(wake, KEYS[2], KEYS[3], '')
if permitted and who then
  redis.call('SET', KEYS[3], '1', 'PX', math.max(redis.call('PTTL', KEYS[2]), 1000))
  return deleted * 2
end
return deleted
