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

-- One script removes so many entries at the most, so that no other command waits for long;
-- more is whether there are further ones, and nobody has been told that the key is free.
-- The client then sends a command that goes on (see removeDead in queue.go). late is how many of those removed
-- had been woken, and had not come.
local most, removed, late, more = 100, 0, 0, false

local function remove(queue, who)
  if removed == most then
    more = true
    return false
  end
  removed = removed + 1
  redis.call('ZREM', queue, who, '@' .. who)
  return true
end

-- first is who is first in the queue, and its ticket and, if it was woken, until when it
-- may come; then the second, and its ticket. Who has not come in time has lost its place,
-- but for me.
local function first(queue, now, me)
  while true do
    local head = ask(queue, 'ZRANGEBYSCORE', '100000000000000', '+inf', 'WITHSCORES', 'LIMIT', 0, 2)
    local who = head and head[1]
    if not who then
      return nil
    end
    local by = tonumber(redis.call('ZSCORE', queue, '@' .. who) or nil)
    -- Nobody was given longer than a second: the clock was set back.
    if who == me or not by or by > now and by <= now + 1000 or not remove(queue, who) then
      return who, tonumber(head[2]), by, head[3], head[4]
    end
    late = late + 1
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

-- tell sends a message: what, the ticket, and the key as the receiver calls it, so that a
-- later wait does not take it for its own. It returns how many heard it, or an error.
local function tell(what, who, ticket)
  local space = string.find(who, ' ', 1, true) or #who
  local publish = string.sub(who, 1, 1) == '{' and 'SPUBLISH' or 'PUBLISH'
  local message = what .. string.format('%.0f', tonumber(ticket)) .. string.sub(who, space)
  return redis.pcall(publish, 'redlock:wake:' .. string.sub(who, 1, space - 1), message)
end

-- Where some did not come there may be more of them, and a second for each would add up. So
-- four times as many are woken next, all until the same time: the dead among them are
-- removed together then. The living come at once, are told when that is, and have no
-- deadline any more.
local function together(queue, by, me)
  local some = redis.call('ZRANGEBYSCORE', queue, '100000000000000', '+inf', 'WITHSCORES', 'LIMIT', 1, math.min(4 * late, 64) - 1)
  for i = 1, #some, 2 do
    if some[i] ~= me then
      local heard = tell('', some[i], some[i + 1])
      if type(heard) == 'table' or heard > 0 then
        redis.call('ZADD', queue, string.format('%.0f', by), '@' .. some[i])
      else
        remove(queue, some[i])
      end
    end
  end
end

-- wake tells the first in the queue that the key is free, and returns who that is and how
-- many milliseconds it has to come; -2 if there is more to remove before. Whom nobody hears
-- for has lost its place; whom we are not permitted to tell has not. I am told by what the
-- script returns. The second is told to look after the first one's time: if that has died,
-- nobody else may come. Without anybody left the queue is gone, and its flag.
local function wake(queue, flag, me)
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  while true do
    local who, ticket, by, second, its = first(queue, now, me)
    if not who then
      redis.call('DEL', queue, flag)
      return nil
    end
    if more then
      return who, -2
    end
    local heard = who == me and 1 or tell('', who, ticket)
    if type(heard) == 'table' or heard > 0 then
      if not by or who == me then
        by = now + 1000
        redis.call('ZADD', queue, string.format('%.0f', by), '@' .. who)
        if who ~= me and late > 0 then
          together(queue, by, me)
        elseif who ~= me and second and second ~= me then
          tell('~', second, its)
        end
      end
      return who, by - now
    end
    if not remove(queue, who) then
      return who, -2
    end
  end
end
