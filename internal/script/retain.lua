-- Gives the key up for its holder and leaves it taken for a time. The first waiter is told when the
-- key expires.
-- KEYS[1] the key; KEYS[2] its flag, which exists while somebody waits; ARGV[1] our value; ARGV[2]
-- in how many milliseconds the key is to expire, which may be sooner than it would.
-- Returns 1, or 0 if the key is not ours and stays as it is; 4 more if the queue has more dead
-- entries than one script removes.
local held = redis.pcall('GET', KEYS[1])
if held ~= ARGV[1] then
  -- A key of another type is another client's too; any other error is an error.
  if type(held) == 'table' and string.sub(held.err, 1, 9) ~= 'WRONGTYPE' then
    return held
  end
  return 0
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
if not redis.pcall('GET', KEYS[2]) then
  return 1
end

--include wake.lua

local queue = string.gsub(KEYS[2], 'redlock:queued:', 'redlock:queue:', 1)

-- tell notifies the first waiter that has subscribers, and removes those before it. If there is none,
-- the queue and its flag are deleted.
local function tell()
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  while true do
    local name, ticket = first(queue, now, '')
    if not name then
      redis.call('DEL', queue, KEYS[2]) -- all waiters were dead
    end
    if not name or more then
      return
    end
    local heard = notify('=' .. ARGV[2] .. ' ', name, ticket)
    if type(heard) == 'table' or heard > 0 or not remove(queue, name) then
      return
    end
  end
end

pcall(tell) -- this user may lack the waiters' rights
return more and 5 or 1
