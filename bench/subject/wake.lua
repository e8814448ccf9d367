-- The queue of a key is a sorted set. Who waits is in it by ticket; '@' and its name are
-- in it by the time, in milliseconds of this server, by which it must have come once
-- woken. Tickets are microseconds, so all tickets are above all times.
-- A name is an address and the key as its owner calls it, with a space between.

-- ask is a command on the queue. What is no sorted set is no queue of ours, and goes.
local function ask(queue, command, ...)
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

-- first is who is first in the queue, and its ticket and, if it was woken, until when it
-- may come. Who has not come in time has lost its place, but for me.
local function first(queue, now, me)
  while true do
    local head = ask(queue, 'ZRANGEBYSCORE', '100000000000000', '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    local who = head and head[1]
    if not who then
      return nil
    end
    local by = tonumber(redis.call('ZSCORE', queue, '@' .. who) or nil)
    -- Nobody was given longer than a second: the clock was set back.
    if who == me or not by or by > now and by <= now + 1000 then
      return who, tonumber(head[2]), by
    end
    redis.call('ZREM', queue, who, '@' .. who)
  end
end

-- leave takes who out of the queue, unless it has a later ticket: that is of another wait.
local function leave(queue, flag, who, ticket)
  local mine = ask(queue, 'ZSCORE', who)
  if mine and tonumber(mine) <= tonumber(ticket) then
    redis.call('ZREM', queue, who, '@' .. who)
    if redis.call('EXISTS', queue) == 0 then
      redis.call('DEL', flag)
    end
  end
end

-- wake tells the first in the queue that the key is free, and returns who that is and how
-- many milliseconds it has to come. The message is its ticket and the key as it calls it,
-- so that a later wait does not take it for its own. Whom nobody hears for has lost its
-- place; whom we are not permitted to tell has not. I am told by what the script returns. Without anybody left the queue is gone, and
-- its flag.
local function wake(queue, flag, me)
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  while true do
    local who, ticket, by = first(queue, now, me)
    if not who then
      redis.call('DEL', queue, flag)
      return nil
    end
    local heard = who == me and 1
    if not heard then
      local space = string.find(who, ' ', 1, true) or #who
      local publish = string.sub(who, 1, 1) == '{' and 'SPUBLISH' or 'PUBLISH'
      local message = string.format('%.0f', ticket) .. string.sub(who, space)
      heard = redis.pcall(publish, 'redlock:wake:' .. string.sub(who, 1, space - 1), message)
    end
    if type(heard) == 'table' or heard > 0 then
      if not by or who == me then
        by = now + 1000
        redis.call('ZADD', queue, string.format('%.0f', by), '@' .. who)
      end
      return who, by - now
    end
    redis.call('ZREM', queue, who, '@' .. who)
  end
end
