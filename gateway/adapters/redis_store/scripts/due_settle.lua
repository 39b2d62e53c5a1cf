#!lua flags=allow-oom
-- due_settle: an entry was swept: it moves to the session's next deadline, or goes. Only if it is still what was read.
-- KEYS 1 zset session -> earliest deadline (ms)
-- ARGV 1 session, 2 score as read, 3 next deadline in (ms), or empty
-- Result: 1 when it was moved or removed, else 0

-- A writer brings its state up to DUE_NOTE_MS after its note, and this entry may be all that is left of that note. So the first
-- look at an entry moves it by at most DUE_NOTE_MS, or by ABSENT_MS when nothing is due any more, and marks it by `.5`; a new
-- note takes the mark off. Only a second look at the same entry moves it as far as asked, or removes it.

-- include: lib_server

local DUE, session, score, next_ms = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local now = clock()
if redis.call('ZSCORE', DUE, session) ~= score then
  return 0
end
local is_second_look = tonumber(score) % 1 ~= 0
if next_ms == '' then
  if is_second_look then
    redis.call('ZREM', DUE, session)
  else
    redis.call('ZADD', DUE, digits(now + ABSENT_MS) .. '.5', session)
  end
elseif is_second_look or next_ms - DUE_NOTE_MS <= 0 then
  redis.call('ZADD', DUE, digits(now + next_ms), session)
else
  redis.call('ZADD', DUE, digits(now + DUE_NOTE_MS) .. '.5', session)
end
return 1
