-- Makes our key live for at least ttl.
-- KEYS[1] the key; ARGV[1] our value; ARGV[2] the ttl in milliseconds.
-- With fencing: KEYS[2] the fence; ARGV[3] our token; ARGV[4] for how many milliseconds to keep
-- the fence.
-- Returns 1, or 0 if the key is not ours. It never shortens what remains of the ttl, and never
-- changes or creates a key that is not ours. The fence is neither lowered nor kept for shorter
-- than it was.
local held = redis.pcall('GET', KEYS[1])
if held ~= ARGV[1] then
  if type(held) == 'table' and string.sub(held.err, 1, 9) ~= 'WRONGTYPE' then
    return held
  end
  return 0
end
local fence, highest
if KEYS[2] then
  fence = redis.call('GET', KEYS[2])
  highest = tonumber(fence or 0)
  if not (highest and highest >= 0 and highest < 9007199254740992) then
    return redis.error_reply('ERR the fence is not a token')
  end
end
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
if KEYS[2] then
  if highest < tonumber(ARGV[3]) then
    fence = ARGV[3]
  end
  local left = redis.call('PTTL', KEYS[2])
  if left == -1 or left > tonumber(ARGV[4]) then
    redis.call('SET', KEYS[2], fence, 'KEEPTTL')
  else
    redis.call('SET', KEYS[2], fence, 'PX', ARGV[4])
  end
end
return 1
