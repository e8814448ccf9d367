-- Deletes the key if it has our value, and wakes the first waiter.
-- KEYS[1] the key; KEYS[2] its flag, which exists while somebody waits; ARGV[1] our value.
-- After a wait: KEYS[2] the queue; KEYS[3] the flag; ARGV[2] our name and ARGV[3] our ticket, as
-- a node that refused us may still have our entry.
-- Returns 1 if it has deleted the key, 2 if that has woken a waiter, otherwise 0; 4 more if the
-- queue has more dead entries than one script removes.
--
-- Deleting the flag with the key shows whether anybody waits, and costs less than a look. The
-- queue as a third key would cost every release as much again. So its name is derived from the
-- flag's, if somebody waits. They differ in a part that does not decide the Cluster slot.
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
  -- A key of another type is another client's too; any other error is an error.
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
if ARGV[2] then
  pcall(dequeue, queue, flag, ARGV[2], ARGV[3]) -- this user may lack the right to
end
if held then
  return 0
end
return handOver(queue, flag, deleted)
