-- KEYS[1] the key; KEYS[2] its flag, which is there while somebody is in its queue;
-- ARGV[1] our value. If we waited: KEYS[2] the queue, KEYS[3] the flag, ARGV[2] our name in
-- the queue and ARGV[3] our ticket, as we may still be in it where we did not get the key.
-- Deletes the key if it is ours: 1, or 2 if that has woken somebody. Otherwise leaves it
-- alone: 0. If the queue has more of the dead than one script removes: 4 above that.
--
-- To delete the flag with the key tells whether anybody waits at less cost than to look.
-- A third key would cost every release as much again, so if somebody does the queue's name
-- is made of the flag's: it differs in a part that does not decide the Cluster slot.
local queue, flag = KEYS[2], KEYS[3]
if not flag then
  flag = queue
end
local held = redis.pcall('GET', KEYS[1])
local deleted = 0
if held == ARGV[1] then
  if redis.call('DEL', KEYS[1], flag) == 1 then
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
elseif redis.call('DEL', flag) == 0 then
  return 0
end

--include wake.lua

if not KEYS[3] then
  queue = string.gsub(flag, 'redlock:queued:', 'redlock:queue:', 1)
end
-- Our user may not be permitted what those who wait are: the key is gone all the same.
if ARGV[2] then
  pcall(leave, queue, flag, ARGV[2], ARGV[3])
end
if held then
  return 0
end
local permitted, who = pcall(wake, queue, flag, '')
if permitted and who then
  redis.call('SET', flag, '1', 'PX', math.max(redis.call('PTTL', queue), 1000))
  deleted = deleted * 2
end
if more then
  return deleted + 4
end
return deleted
