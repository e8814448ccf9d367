-- KEYS[1] the key; ARGV[1] our value.
-- Deletes the key if it is ours: 1. Otherwise leaves it alone and says what it
-- found: 0 no key, or minus the milliseconds that somebody else's has left.
local held = redis.pcall('GET', KEYS[1])
if held == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
if not held then
  return 0
end
-- A key of another type is somebody else's too; any other error is an error.
if type(held) == 'table' and string.sub(held.err, 1, 9) ~= 'WRONGTYPE' then
  return held
end
local left = redis.call('PTTL', KEYS[1])
if left < 0 then
  return -9007199254740991 -- it never expires
end
return -math.max(left, 1)
