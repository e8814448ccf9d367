-- KEYS[1] the key; ARGV[1] our value; ARGV[2] ttl in milliseconds.
-- Makes our key live for ttl at least: 1. It never shortens what remains, and
-- never touches, or creates, a key that is not ours: 0.
local held = redis.pcall('GET', KEYS[1])
if held ~= ARGV[1] then
  if type(held) == 'table' and string.sub(held.err, 1, 9) ~= 'WRONGTYPE' then
    return held
  end
  return 0
end
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 1
