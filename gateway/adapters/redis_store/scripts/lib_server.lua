-- What a script knows of the server and of time. Constants in capitals come from the settings (scripts.py).

-- Unix milliseconds and microseconds, the same for the whole script.
local function clock()
  local time = redis.call('TIME')
  local us = time[1] * 1000000 + time[2]
  return math.floor(us / 1000), us
end

-- master_replid: another one after every restart and every promotion.
local function server_incarnation()
  return string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
end

-- Field `log` of meta, the state of the log: `<head> <ts> <lost> <bytes> <freed> <plain> <kept>`. `ts` is the last timestamp,
-- `lost` the highest seq that is gone; `bytes` counts everything appended in this epoch, `freed` what is known to have left
-- the log: bytes - freed is never less than what it holds. `plain` is the last seq that neither a run's text nor a kept item
-- can rebuild, `kept` the bytes of all kept texts. Returned as text, nothing without meta.
local function log_state(text)
  return string.match(text or '', '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
end

-- Numbers as text without exponent: `..` alone writes 1e+14.
local function digits(number)
  return string.format('%d', number)
end

-- redis.md "times to live": 4/3 of the value, again when less than the value remains.
local function keep(key, value_ms)
  if redis.call('PTTL', key) < value_ms then
    redis.call('PEXPIRE', key, math.floor(value_ms * 4 / 3))
  end
end
