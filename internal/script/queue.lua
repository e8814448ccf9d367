-- Takes a free key in the order of its queue, or adds or removes a queue entry.
-- KEYS[1] the key; KEYS[2] its queue; KEYS[3] its flag, which exists while somebody waits; KEYS[4]
-- with fencing the key's fence.
-- ARGV[1] the action: 'try' takes a free key unless a waiter with a lower ticket is in the queue,
-- and otherwise adds our entry; 'enqueue' adds our entry in any case; 'dequeue' removes it.
-- ARGV[2] our name; ARGV[3] our ticket, 0 for a client without an entry; ARGV[4] a value of ours to
-- give back first, or nothing.
-- To try: ARGV[5] our value; ARGV[6] the ttl in milliseconds; with fencing: ARGV[7] the proposed
-- token; ARGV[8] for how many milliseconds to keep the fence.
--
-- If the key is free and somebody waits, the script wakes the first waiter.
--
-- Returns six numbers:
--   the state: 0 another client has the key, 1 we have it, 2 it is free for us to try, 3 it is free
--   for us but the fence is too high, 4 it is free for a waiter ahead of us;
--   in how many milliseconds that may change; -1 if unknown; -2 as soon as more dead entries are
--   removed; 1 if an 'enqueue' found that a woken waiter has missed its deadline;
--   how many waiters are ahead of us;
--   the highest ticket;
--   the fence;
--   a digest of the value that has the key, by which a waiter sees that the key has changed hands;
--   0 for none.
local key, queue, flag = KEYS[1], KEYS[2], KEYS[3]
local action, name, ticket, value = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[5]

--include wake.lua

local held = redis.pcall('GET', key)
-- A key of another type is another client's too; any other error is an error.
if type(held) == 'table' and string.sub(held.err, 1, 9) ~= 'WRONGTYPE' then
  return held
end
if held and held == ARGV[4] and held ~= '' then
  redis.call('DEL', key)
  held = false
end

if action == 'dequeue' then
  dequeue(queue, flag, name, ticket)
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

-- A client without an entry is nobody in the queue, whatever its name.
local me = ticket > 0 and name or ''
local state = 0
local ours = action == 'try' and held == value
if action == 'try' and (ours or not held) then
  local time = redis.call('TIME')
  local head, lowest = first(queue, time[1] * 1000 + math.floor(time[2] / 1000), me)
  local turn = ours or not head or head == me or ticket > 0 and (ticket < lowest or ticket == lowest and name < head)
  if not turn then
    head = wake(queue, flag, me) -- all waiters ahead may have been dead
    turn = not head or head == me
  end
  if turn then
    local token = tonumber(ARGV[7] or 0)
    if fence and (highest > token or highest == token and not ours) then
      state = 3
    else
      -- Commands that this user may lack rights to come first. Otherwise the script could fail
      -- half-way, and leave a key that nobody has.
      if not head then
        redis.call('DEL', flag) -- all waiters were dead
      elseif ticket > 0 then
        dequeue(queue, flag, name, ticket)
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
  -- An entry is only ever moved back. It is kept for three minutes, in which its waiter looks
  -- twice. A waiter that has come has no deadline any more.
  local mine = read(queue, 'ZSCORE', name)
  if not mine or tonumber(mine) < ticket then
    redis.call('ZADD', queue, ARGV[3], name)
  end
  redis.call('ZREM', queue, '@' .. name)
  redis.call('PEXPIRE', queue, 180000)
  redis.call('SET', flag, '1', 'PX', 180000)
end

local left, holder = 0, 0
if held then
  left = redis.call('PTTL', key)
  if ticket > 0 and type(held) == 'string' then
    -- 48 bits fit into a number of Lua.
    holder = tonumber(string.sub(redis.sha1hex(held), 1, 12), 16)
  end
else
  local woken, within = wake(queue, flag, me)
  -- State 3 was found when it was our turn. It stays, so that the client proposes a higher token.
  if state ~= 3 then
    if woken == me then
      state = 2
    else
      state, left = 4, within or 0
    end
    if action == 'enqueue' and missed > 0 and not more then
      left = 1
    elseif left == 1 then
      left = 2
    end
  end
end
-- A score above all possible tickets is no ticket, and would hide those below: see tickets.go.
-- ZREVRANGEBYSCORE is one command where this takes three, but this user may have no right to it.
local last = tonumber(redis.call('ZRANGE', queue, -1, -1, 'WITHSCORES')[2] or 0)
if not last or last > 6755399441055744 then
  local below = redis.call('ZCOUNT', queue, '-inf', '6755399441055744') - 1
  last = below >= 0 and tonumber(redis.call('ZRANGE', queue, below, below, 'WITHSCORES')[2]) or 0
end
return {state, left, redis.call('ZCOUNT', queue, '100000000000000', '(' .. ARGV[3]), last, highest, holder}
