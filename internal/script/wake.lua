-- The queue of a key is a sorted set. Each waiter is in it under its name, with its ticket as the
-- score. A waiter that was woken is in it once more, as '@' and its name, with its deadline as the
-- score: the time in milliseconds, by this server's clock, by which it must come. Tickets are
-- microseconds, so all tickets are above all deadlines.
-- A name is the waiter's channel, a space, and the key as the waiter's client names it.

-- read runs a command on the queue. A key of another type is no queue: it is deleted, and the
-- result is false.
local function read(queue, command, ...)
  local reply = redis.pcall(command, queue, ...)
  if type(reply) ~= 'table' or not reply.err then
    return reply
  end
  if not string.find(reply.err, 'WRONGTYPE', 1, true) then
    error(reply.err)
  end
  redis.call('DEL', queue)
  return false
end

-- A script removes at most 100 entries, so that no other command waits for long. more is true if
-- there are further ones. Then no waiter was told that the key is free, and the client sends an
-- operation that goes on (see observer in wait.go). missed is the number of removed waiters that
-- had been woken and missed their deadline.
local most, removed, missed, more = 100, 0, 0, false

local function remove(queue, name)
  if removed == most then
    more = true
    return false
  end
  removed = removed + 1
  redis.call('ZREM', queue, name, '@' .. name)
  return true
end

-- first returns the name of the first waiter, its ticket, and its deadline if it was woken; then
-- the name of the second waiter and its ticket. Waiters ahead that have missed their deadline are
-- removed, but not me.
local function first(queue, now, me)
  while true do
    local head = read(queue, 'ZRANGEBYSCORE', '100000000000000', '+inf', 'WITHSCORES', 'LIMIT', 0, 2)
    local name = head and head[1]
    if not name then
      return nil
    end
    local deadline = tonumber(redis.call('ZSCORE', queue, '@' .. name) or nil)
    -- No deadline is more than a second away, unless the clock was set back.
    if name == me or not deadline or deadline > now and deadline <= now + 1000 or not remove(queue, name) then
      return name, tonumber(head[2]), deadline, head[3], head[4]
    end
    missed = missed + 1
  end
end

-- dequeue removes the waiter, unless it has a later ticket, which belongs to another wait.
local function dequeue(queue, flag, name, ticket)
  local mine = read(queue, 'ZSCORE', name)
  if mine and tonumber(mine) <= tonumber(ticket) then
    redis.call('ZREM', queue, name, '@' .. name)
    if redis.call('EXISTS', queue) == 0 then
      redis.call('DEL', flag)
    end
  end
end

-- notify publishes a message to a waiter: kind ('' for a free key, '~' to the second waiter, '=' and
-- milliseconds for a key that expires), its ticket, and the key as its client names it. A
-- later wait of that client recognises by the ticket that the message is not for it. The result
-- is the number of subscribers, or an error.
local function notify(kind, name, ticket)
  local space = string.find(name, ' ', 1, true) or #name
  local publish = string.sub(name, 1, 1) == '{' and 'SPUBLISH' or 'PUBLISH'
  local message = kind .. string.format('%.0f', tonumber(ticket)) .. string.sub(name, space)
  return redis.pcall(publish, 'redlock:wake:' .. string.sub(name, 1, space - 1), message)
end

-- Where waiters have missed their deadline, more may be dead, and each would cost a second.
-- So wakeGroup wakes four times as many of the waiters behind the first, all with its deadline.
-- The dead among them are removed together then. The living come at once, learn the deadline from
-- the reply, and have none of their own any more.
local function wakeGroup(queue, deadline, me)
  local group = redis.call('ZRANGEBYSCORE', queue, '100000000000000', '+inf', 'WITHSCORES', 'LIMIT', 1, math.min(4 * missed, 64) - 1)
  for i = 1, #group, 2 do
    if group[i] ~= me then
      local heard = notify('', group[i], group[i + 1])
      if type(heard) == 'table' or heard > 0 then
        redis.call('ZADD', queue, string.format('%.0f', deadline), '@' .. group[i])
      else
        remove(queue, group[i])
      end
    end
  end
end

-- wake tells the first waiter that the key is free. It returns the waiter's name, and how many
-- milliseconds it has to come; -2 if more entries are to be removed first. A waiter without
-- subscribers is removed, and the next is woken. A waiter that this user has no right to notify
-- keeps its entry. I need no message, as the script's reply tells me. The second waiter is
-- notified too: it looks after the deadline of the first, which may be dead. If nobody waits, the
-- queue and its flag are deleted.
local function wake(queue, flag, me)
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  while true do
    local name, ticket, deadline, second, secondTicket = first(queue, now, me)
    if not name then
      redis.call('DEL', queue, flag)
      return nil
    end
    if more then
      return name, -2
    end
    local heard = name == me and 1 or notify('', name, ticket)
    if type(heard) == 'table' or heard > 0 then
      if not deadline or name == me then
        deadline = now + 1000
        redis.call('ZADD', queue, string.format('%.0f', deadline), '@' .. name)
        if name ~= me and missed > 0 then
          wakeGroup(queue, deadline, me)
        elseif name ~= me and second and second ~= me then
          notify('~', second, secondTicket)
        end
      end
      return name, deadline - now
    end
    if not remove(queue, name) then
      return name, -2
    end
  end
end

-- handOver wakes the first waiter after the key and the flag were deleted, and returns the
-- script's reply. deleted is 1 if the script has deleted the key, otherwise 0. The reply is twice
-- that if a waiter was woken, and 4 more if more entries are to be removed. This user may lack
-- the waiters' rights. The key is gone all the same, so that is no error.
local function handOver(queue, flag, deleted)
  local permitted, name = pcall(wake, queue, flag, '')
  if permitted and name then
    redis.call('SET', flag, '1', 'PX', math.max(redis.call('PTTL', queue), 1000))
    deleted = deleted * 2
  end
  if more then
    return deleted + 4
  end
  return deleted
end
