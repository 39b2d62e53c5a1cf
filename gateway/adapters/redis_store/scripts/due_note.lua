#!lua flags=allow-oom
-- due_note: a deadline of a session, written before the state that it names (design.md 6 "sweeps").
-- KEYS 1 zset session -> earliest deadline (ms); `.5` at its end: looked at once without a new note since (due_settle)
-- ARGV 1 session, 2 due in (ms), 3 time to live of the index beyond it (ms)
-- Result: the server's time (ms)

-- include: lib_server

local DUE, session, in_ms = KEYS[1], ARGV[1], tonumber(ARGV[2])
local now = clock()
local wanted = now + in_ms
local stored = tonumber(redis.call('ZSCORE', DUE, session) or 'inf')
local first = stored - stored % 1
if wanted < stored then
  redis.call('ZADD', DUE, digits(wanted), session)
elseif stored <= now then
  -- A sweep may have read this entry before our state is there: what it read is not what it finds.
  redis.call('ZADD', DUE, digits(first - 1), session)
elseif first ~= stored then
  redis.call('ZADD', DUE, digits(first), session)
end
keep(DUE, in_ms + ARGV[3])
return now
