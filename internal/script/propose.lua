-- Takes a free key if the proposed token is above the key's fence, and raises the fence to it.
-- KEYS[1] the key; KEYS[2] its fence: the highest token that this node has granted; ARGV[1] our
-- value; ARGV[2] the ttl in milliseconds; ARGV[3] the token; ARGV[4] for how many milliseconds to
-- keep the fence; ARGV[5] '1' for a token that is ours already, where only the key is to be put
-- back.
-- Returns 1 if it has taken the key. Otherwise key and fence are as they were, though the fence
-- may be kept for longer: the reply is the fence if that is too high, and minus the fence, or 0
-- without one, if another client has the key.
-- A fence is never kept for shorter than it was: the longest retention of any client counts, and
-- a fence without a ttl stays for ever.
--
-- Tokens are stored as they came: Lua would write 16 digits as 1.79e+15.

-- PTTL costs a server 0.6 µs of 8. PEXPIRE with GT would be a command too, needs Redis 7, and
-- gives a new fence no ttl. PTTL comes first as this user may have no right to it: nothing has
-- been done yet.
local left = redis.call('PTTL', KEYS[2])
local keep = left == -1 or left > tonumber(ARGV[4])

-- Mostly the key is free and the token high enough. So the script assumes that, for two more
-- commands, and undoes them if it was wrong. Commands are what a server spends its time on.
if ARGV[5] == '0' and redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  local fence
  if keep then
    fence = redis.pcall('SET', KEYS[2], ARGV[3], 'KEEPTTL', 'GET')
  else
    fence = redis.pcall('SET', KEYS[2], ARGV[3], 'PX', ARGV[4], 'GET')
  end
  local highest = 0
  if fence then
    highest = type(fence) == 'string' and tonumber(fence)
  end
  if highest and highest >= 0 and highest < tonumber(ARGV[3]) then
    return 1
  end
  redis.call('DEL', KEYS[1])
  if type(fence) == 'table' then
    return fence -- an error
  end
  redis.call('SET', KEYS[2], fence, 'KEEPTTL')
  if not (highest and highest >= 0 and highest < 9007199254740992) then
    return redis.error_reply('ERR the fence is not a token')
  end
  return highest
end

local fence = redis.call('GET', KEYS[2])
local highest, token = tonumber(fence or 0), tonumber(ARGV[3])
if not (highest and highest >= 0 and highest < 9007199254740992) then
  return redis.error_reply('ERR the fence is not a token')
end
local held = redis.pcall('GET', KEYS[1])
local ours = held == ARGV[1]
if held and not ours then
  -- A key of another type is another client's too; any other error is an error.
  if type(held) == 'table' and string.sub(held.err, 1, 9) ~= 'WRONGTYPE' then
    return held
  end
  return -highest
end
if ARGV[5] == '0' and highest > token then
  return highest -- we have the key by a higher proposal, which overtook this one
end
if not ours then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
elseif redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
if token > highest then
  fence = ARGV[3]
end
if keep then
  redis.call('SET', KEYS[2], fence, 'KEEPTTL')
else
  redis.call('SET', KEYS[2], fence, 'PX', ARGV[4])
end
return 1
