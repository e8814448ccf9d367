-- Reports what the node knows of a key, and changes nothing.
-- KEYS[1] the key; KEYS[2] its flag, which is not read. The names of the queue and of the fence are
-- derived from the flag's; they differ in a part that does not decide the Cluster slot. As keys
-- of their own they would shut out users without rights to them.
-- Returns five things: the value, nothing if the key is free, 1 if it is of another type; in how
-- many milliseconds it expires, -1 if never; the number of waiters, and the fence, each -1 if it
-- may not be read or is malformed; the name of the other type, empty if there is none or it may
-- not be read.
local held = redis.pcall('GET', KEYS[1])
local left = 0
local kind = ''
if type(held) == 'table' then
  if string.sub(held.err, 1, 9) ~= 'WRONGTYPE' then
    return held
  end
  held = 1
  kind = redis.pcall('TYPE', KEYS[1]).ok or ''
end
if held then
  left = redis.call('PTTL', KEYS[1])
end

-- Tickets are above this number, and deadlines below; see wake.lua.
local queue = string.gsub(KEYS[2], 'redlock:queued:', 'redlock:queue:', 1)
local waiting = redis.pcall('ZCOUNT', queue, '100000000000000', '+inf')
if type(waiting) == 'table' then
  waiting = -1
end

local name = string.gsub(KEYS[2], 'redlock:queued:', 'redlock:fence:', 1)
local fence = redis.pcall('GET', name)
local highest = -1
if type(fence) ~= 'table' then
  highest = tonumber(fence or 0)
  if not (highest and highest >= 0 and highest < 9007199254740992) then
    highest = -1
  end
end

return {held, left, waiting, highest, kind}
