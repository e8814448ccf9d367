-- KEYS[1] the key; KEYS[2] its guard: the highest token seen. ARGV[1] token;
-- ARGV[2] value, or nothing to delete; ARGV[3] ttl in milliseconds, 0 for none.
-- Writes if no higher token has been seen: OK. Otherwise says which was.
local highest = redis.call('GET', KEYS[2])
if highest then
  -- As texts, since Lua prints a number of 16 digits as 1.79e+15.
  if not string.find(highest, '^%d+$') then
    return redis.error_reply('ERR ' .. KEYS[2] .. ' holds no token')
  end
  if tonumber(highest) > tonumber(ARGV[1]) then
    return highest
  end
end
-- The guard first: if memory is short it is this that fails, and nothing is written.
if highest ~= ARGV[1] then
  redis.call('SET', KEYS[2], ARGV[1])
end
if not ARGV[2] then
  redis.call('DEL', KEYS[1])
elseif ARGV[3] == '0' then
  redis.call('SET', KEYS[1], ARGV[2])
else
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
end
return redis.status_reply('OK')
