#!lua
-- append: producer check, sequence, log, publication of 1..n messages, whole or not at all (redis.md, design.md 4).
-- KEYS 1 meta, 2 log, 3 gws, 4 runs, 5 clients, 6 seen
-- ARGV 1 incarnation, 2 `p:<producer>`, 3 its epoch, 4 first number, 5 options: `r` this call may register that epoch, `x`
--      four more arguments follow: owner, idempotency key, code and count (the numbers are consumed as refused with the
--      code, nothing is appended); then for each message: class, with `+` if its text counts; run; text bytes; the frame
--      from after its timestamp to before `at`
-- Result, lines of text:
--   a <line> <head> <live> <answers> <gateway>...   answers: for each repeat `=<seq>`, `=` or `!<code>`, then `+<seq>`: the
--                                                   others were appended from that seq on
--   e <number>   the number that is expected
--   x <index>    refused: message <index> (from 0) belongs to a run that has ended
--   u, f         refused: producer unknown, fenced
--   m            nothing done: no meta, a tombstone, or meta names another server: call `enter`, then again

-- The common path (the next number of a known producer, no run) defines no function: each closure costs as much as a call to
-- Redis. What is unusual is included where it is needed.

local call, format = redis.call, string.format
local META, LOG, RUNS = KEYS[1], KEYS[2], KEYS[4]
local field, epoch, number, options = ARGV[2], ARGV[3], ARGV[4] + 0, ARGV[5]
local meta = call('HMGET', META, 'inc', 'line', 'head', 'ts', 'lost', 'bytes', 'freed', field)
if meta[1] ~= ARGV[1] or not meta[3] then
  return 'm'
end
if VERIFY_EVERY_CALL then
  -- include: lib_server
  if server_incarnation() ~= meta[1] then
    return 'm'
  end
end
local line, head, ts, record = meta[2], meta[3] + 0, meta[4] + 0, meta[8]
local time = call('TIME')
local now = time[1] * 1000 + (time[2] - time[2] % 1000) / 1000

-- Gateways with a live lease; the others are forgotten.
local channels, gateways = {}, ''
local leases = call('HGETALL', KEYS[3])
for i = 1, #leases, 2 do
  if leases[i + 1] + 0 > now then
    channels[#channels + 1] = 'rr:ch:' .. leases[i]
    gateways = gateways .. '\n' .. leases[i]
  else
    call('HDEL', KEYS[3], leases[i])
  end
end

-- Who appends: the next number of a known epoch whose last one was appended, or something unusual.
local known_epoch, last, shift, segments
if record then
  known_epoch, last, shift, segments = string.match(record, '^(%d+) (%d+) =(%-?%d+) (.*)$')
end
local first_item, upto, repeats = 6, number - 1 + (#ARGV - 5) / 4, ''
local first_number, owner, seen_key = number, '', ''
if known_epoch ~= epoch or number ~= last + 1 or (options ~= '' and options ~= 'r') then
  -- include: lib_server
  -- include: lib_producers
  if record then
    local what
    known_epoch, last, what, segments = string.match(record, RECORD)
    last = tonumber(last)
  end
  local code, registers, refusal = '', string.sub(options, 1, 1) == 'r', nil
  if options == 'x' or options == 'rx' then
    owner, seen_key, code, first_item = ARGV[6], ARGV[7], ARGV[8], 10
    upto = number - 1 + (code == '' and (#ARGV - 9) / 4 or tonumber(ARGV[9]))
  end
  if known_epoch ~= epoch then
    if not registers then
      refusal = record and 'f' or 'u'
    elseif record and tonumber(known_epoch) > tonumber(epoch) then
      refusal = 'f'
    end
    last, segments = 0, ''
  end
  local function answer(answers)
    return 'a\n' .. line .. '\n' .. digits(head) .. (#channels > 0 and '\n1\n' or '\n0\n') .. answers .. gateways
  end

  -- A key that was seen: `<first seq> <count> <ms>`. It goes before the producer check.
  local seen = seen_key ~= '' and call('HGET', KEYS[6], 'k' .. seen_key) or ''
  local first_seq, seen_count, seen_ms = string.match(seen, '^(%d+) (%d+) (%d+)$')
  if first_seq and now - seen_ms <= SEEN_MS then
    local answers = {}
    for i = 1, upto - number + 1 do
      answers[i] = i <= tonumber(seen_count) and '=' .. digits(first_seq + i - 1) or '='
    end
    if not refusal and number == last + 1 then
      remember(META, field, record, segments, epoch, number, upto, '=' .. digits(first_seq - number))
    end
    return answer(table.concat(answers, ' '))
  end

  -- The producer check: last + 1 only; what is at or below last is a repeat.
  if refusal then
    return refusal
  elseif number > last + 1 then
    return 'e\n' .. digits(last + 1)
  end
  while first_number <= last and first_number <= upto do
    repeats = repeats .. recall(first_number, last, segments) .. ' '
    first_number = first_number + 1
  end
  if first_number > upto then
    return answer(repeats)
  elseif code ~= '' then
    remember(META, field, record, segments, epoch, first_number, upto, '!' .. code .. '@' .. digits(head))
    return answer(repeats .. string.rep('!' .. code .. ' ', upto - first_number + 1))
  end
  first_item = first_item + (first_number - number) * 4
end

-- The runs that the messages name: nothing may follow a run's end.
local states
for i = first_item, #ARGV, 4 do
  local run = ARGV[i + 1]
  if run ~= '' then
    states = states or {}
    local state = states[run]
    if not state then
      state = { string.match(call('HGET', RUNS, run) or '', '^(%a) (%d+) (%d+) (%d+) (%d+)') }
      if not state[1] then
        state = { 'o', epoch, 0, 0, is_new = true }
      end
      states[run] = state
    end
    if state[1] == 'e' then
      -- include: lib_server
      -- include: lib_producers
      remember(META, field, record, segments, epoch, first_number, upto, '!run_ended@' .. digits(head))
      return 'x\n' .. digits(first_number - number + (i - first_item) / 4)
    end
    if string.sub(ARGV[i], 1, 1) == 'e' then
      state[1] = 'e'
    end
  end
end

-- From here on everything is written.
local lost, bytes, freed = meta[5] + 0, meta[6] + 0, meta[7] + 0
local freed_before, log_began = freed, head == 0
local stamp = format('%d', ts > now and ts or now)
local first_seq = head + 1
local receivers, seq, first_seq_text = 0, nil, nil

for i = first_item, #ARGV, 4 do
  local class, run, text_bytes, at, at_member = ARGV[i], ARGV[i + 1], ARGV[i + 2], '', '}}'
  head = head + 1
  seq = format('%d', head)
  first_seq_text = first_seq_text or seq
  if run ~= '' then
    local state = states[run]
    state[5] = state[5] or head
    if #class > 1 then
      class = string.sub(class, 1, 1)
      local track = class == 't' and 4 or 3
      at = format('%d', state[track])
      at_member = ',"at":' .. at .. '}}'
      state[track] = state[track] + text_bytes
    end
  end
  local frame = '{"type":"text","seq":' .. seq .. ',"timestamp":' .. stamp .. ARGV[i + 3] .. at_member

  -- The log holds what is above `lost`; when it should exist and does not, it has expired.
  local budget, must_go, is_added = LOG_MAX_EVICTIONS, head - LOG_MAX_MESSAGES, false
  if must_go > lost and head > lost + 1 then
    must_go = math.min(must_go, lost + budget)
    budget, lost = budget - (must_go - lost), must_go
    is_added = call('XADD', LOG, 'NOMKSTREAM', 'MINID', '=', lost + 1, seq, 'c', class, 'b', bytes, 'f', frame,
      'r', run, 'a', at, 'n', text_bytes)
  elseif head > lost + 1 and run == '' then
    is_added = call('XADD', LOG, 'NOMKSTREAM', seq, 'c', class, 'b', bytes, 'f', frame)
  elseif head > lost + 1 then
    is_added = call('XADD', LOG, 'NOMKSTREAM', seq, 'c', class, 'b', bytes, 'f', frame, 'r', run, 'a', at, 'n', text_bytes)
  end
  if not is_added then
    lost, freed, log_began = head - 1, bytes, true
    call('XADD', LOG, seq, 'c', class, 'b', bytes, 'f', frame, 'r', run, 'a', at, 'n', text_bytes)
  end

  -- The oldest go until those before the newest fit, at most `budget` of them. `b` is what had been appended before.
  if bytes - freed > LOG_MAX_BYTES then
    local first = lost + 1
    while true do
      local oldest = call('XRANGE', LOG, first, first)[1]
      freed = oldest and tonumber(oldest[2][4]) or freed
      if bytes - freed <= LOG_MAX_BYTES or budget == 0 or first == head then
        break
      end
      first, budget = first + 1, budget - 1
    end
    if first > lost + 1 then
      call('XTRIM', LOG, 'MINID', '=', first)
      lost = first - 1
    end
  end
  bytes = bytes + #frame

  for j = 1, #channels do
    receivers = receivers + call('PUBLISH', channels[j], '1m\n' .. string.sub(META, 5, -7) .. '\n' .. line .. '\n' .. seq
      .. '\n' .. class .. '\n' .. run .. '\n' .. at .. '\n' .. text_bytes .. '\n' .. frame)
  end
end

-- A producer's record changes in its last number only as long as its messages follow each other in the session.
if shift and known_epoch == epoch and first_seq - first_number == shift + 0 then
  call('HSET', META, 'head', seq, 'ts', stamp, 'lost', lost, 'bytes', bytes, field,
    epoch .. ' ' .. (upto == number and ARGV[4] or format('%d', upto)) .. ' =' .. shift .. ' ' .. segments)
else
  -- include: lib_server
  -- include: lib_producers
  call('HSET', META, 'head', seq, 'ts', stamp, 'lost', lost, 'bytes', bytes)
  remember(META, field, record, segments, epoch, first_number, upto, '=' .. digits(first_seq - first_number))
end
if freed ~= freed_before then
  call('HSET', META, 'freed', freed)
end
if owner ~= '' then
  call('HSETNX', META, 'owner', owner)
end
if states then
  -- include: lib_server
  -- include: lib_runs
  store_runs(RUNS, states)
end
if seen_key ~= '' then
  -- include: lib_server
  -- Slots `#<n>` hold the keys in the order of their arrival, `#` counts them.
  local arrival = call('HINCRBY', KEYS[6], '#', 1)
  local slot = '#' .. arrival % SEEN_MAX
  local oldest = call('HGET', KEYS[6], slot)
  if oldest then
    call('HDEL', KEYS[6], oldest)
  end
  call('HSET', KEYS[6], slot, 'k' .. seen_key, 'k' .. seen_key,
    first_seq_text .. ' ' .. digits(upto - number + 1) .. ' ' .. stamp)
  keep(KEYS[6], SEEN_MS)
end

-- Times to live are looked at by the first append in each quarter of what was set, so that what remains is never less than
-- three quarters. A clock that went back has no quarters: always.
if ts < now - now % LOG_STEP_MS or ts > now or log_began then
  call('PEXPIRE', LOG, LOG_STEP_MS * 4)
  if call('PTTL', META) < META_MS then
    call('PEXPIRE', META, math.floor(META_MS * 4 / 3))
    call('PEXPIRE', KEYS[5], math.floor(META_MS * 4 / 3))
  end
  if states then
    -- include: lib_server
    -- include: lib_runs
    keep_runs(RUNS)
  end
end

return 'a\n' .. line .. '\n' .. seq .. (receivers > 0 and '\n1\n' or '\n0\n') .. repeats .. '+' .. first_seq_text
  .. gateways
