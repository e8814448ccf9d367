-- KEYS[1] the key; KEYS[2] its flag, which is not read: the names of the queue and of the
-- fence are made of its, from which they differ in a part that does not decide the Cluster
-- slot. As keys of their own they would shut out a user who has no rights to them.
-- Changes nothing. Returns five things: the value, nothing if the key is free, 1 if it is
-- of another type; in how many milliseconds it expires, -1 if never; how many are in the
-- queue, and the fence, each -1 if that may not be read or is not what it should be; the
-- other type, empty if it is none or may not be read.
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

-- All tickets are above, and all times below; see wake.lua.
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
