-- KEYS[1] the key; KEYS[2] its queue; KEYS[3] the flag, which is there while somebody is
-- in the queue; KEYS[4] with fencing the key's fence.
-- ARGV[1] what: 'try' takes a free key if nobody with a lower ticket waits, and else takes
-- a place in the queue, as 'stand' does in any case; 'leave' gives that place up.
-- ARGV[2] our name; ARGV[3] our ticket, 0 for no place; ARGV[4] a value of ours to give
-- back first, or nothing.
-- To try: ARGV[5] our value; ARGV[6] ttl in milliseconds; with fencing: ARGV[7] the token
-- that we propose; ARGV[8] in milliseconds how long to keep the fence.
--
-- Whoever finds the key free and the queue not empty wakes the first.
--
-- Returns six numbers: 0 held, 1 granted, 2 free for us to try, 3 free for us, but the
-- fence is too high, 4 free for a waiter ahead of us; in how many milliseconds that may
-- change, -1 if that cannot be said, -2 as soon as more of the dead are removed, 1 if we stood
-- and found that somebody who was woken did not come; how many are ahead of us; the highest
-- ticket; the fence; a digest of the value that has the key, by which a waiter sees that the
-- key has changed hands, 0 for none.
local key, queue, flag = KEYS[1], KEYS[2], KEYS[3]
local what, who, ticket, value = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[5]

--include wake.lua

local held = redis.pcall('GET', key)
-- A key of another type is somebody else's too; any other error is an error.
if type(held) == 'table' and string.sub(held.err, 1, 9) ~= 'WRONGTYPE' then
  return held
end
if held and held == ARGV[4] and held ~= '' then
  redis.call('DEL', key)
  held = false
end

if what == 'leave' then
  leave(queue, flag, who, ticket)
  if not held then
    wake(queue, flag, '')
  end
  return {0, more and -2 or 0, 0, 0, 0, 0}
end

local fence, highest = false, 0
if KEYS[4] then
  fence = redis.call('GET', KEYS[4])
  highest = tonumber(fence or 0)
  if not (highest and highest >= 0 and highest < 9007199254740992) then
    return redis.error_reply('ERR the fence is not a token')
  end
end

-- Who takes no place is nobody in the queue, whatever its name.
local me = ticket > 0 and who or ''
local verdict = 0
local ours = what == 'try' and held == value
if what == 'try' and (ours or not held) then
  local time = redis.call('TIME')
  local head, lowest = first(queue, time[1] * 1000 + math.floor(time[2] / 1000), me)
  local turn = ours or not head or head == me or ticket > 0 and (ticket < lowest or ticket == lowest and who < head)
  if not turn then
    head = wake(queue, flag, me) -- or they were all dead who are ahead
    turn = not head or head == me
  end
  if turn then
    local token = tonumber(ARGV[7] or 0)
    if fence and (highest > token or highest == token and not ours) then
      verdict = 3
    else
      -- What may not be permitted comes first: half of this would be a key that nobody has.
      if not head then
        redis.call('DEL', flag) -- the last were dead
      elseif ticket > 0 then
        leave(queue, flag, who, ticket)
      end
      if KEYS[4] then
        local left = redis.call('PTTL', KEYS[4])
        if left == -1 or left > tonumber(ARGV[8]) then
          redis.call('SET', KEYS[4], ARGV[7], 'KEEPTTL')
        else
          redis.call('SET', KEYS[4], ARGV[7], 'PX', ARGV[8])
        end
      end
      if not ours then
        redis.call('SET', key, value, 'PX', ARGV[6])
      elseif redis.call('PTTL', key) < tonumber(ARGV[6]) then
        redis.call('PEXPIRE', key, ARGV[6])
      end
      return {1, 0, 0, 0, 0, 0}
    end
  end
end

if ticket > 0 and not ours then
  -- A place is only ever moved back, and kept for three minutes: two looks of whoever is
  -- in it. Who has come need not hurry any more.
  local mine = ask(queue, 'ZSCORE', who)
  if not mine or tonumber(mine) < ticket then
    redis.call('ZADD', queue, ARGV[3], who)
  end
  redis.call('ZREM', queue, '@' .. who)
  redis.call('PEXPIRE', queue, 180000)
  redis.call('SET', flag, '1', 'PX', 180000)
end

local left, holder = 0, 0
if held then
  left = redis.call('PTTL', key)
  if ticket > 0 and type(held) == 'string' then
    -- 48 bits: a number of Lua tells all of them apart.
    holder = tonumber(string.sub(redis.sha1hex(held), 1, 12), 16)
  end
else
  local woken, comes = wake(queue, flag, me)
  -- A newcomer has no name, so nobody is woken if nobody else waits. A fence that is too
  -- high was found when it was our turn: we propose a higher token, and are not refused.
  if verdict ~= 3 then
    if woken == me then
      verdict = 2
    else
      verdict, left = 4, comes or 0
    end
    if what == 'stand' and late > 0 and not more then
      left = 1
    elseif left == 1 then
      left = 2
    end
  end
end
-- What is above all tickets of ours is nobody's, and would hide those below: see tickets.go.
-- ZREVRANGEBYSCORE is one command where that takes three, but may not be permitted.
local last = tonumber(redis.call('ZRANGE', queue, -1, -1, 'WITHSCORES')[2] or 0)
if not last or last > 6755399441055744 then
  local below = redis.call('ZCOUNT', queue, '-inf', '6755399441055744') - 1
  last = below >= 0 and tonumber(redis.call('ZRANGE', queue, below, below, 'WITHSCORES')[2]) or 0
end
return {verdict, left, redis.call('ZCOUNT', queue, '100000000000000', '(' .. ARGV[3]), last, highest, holder}
