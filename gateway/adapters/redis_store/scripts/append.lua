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

-- include: lib_server

local call = redis.call
local META, LOG, RUNS = KEYS[1], KEYS[2], KEYS[4]
local field, epoch, number, options = ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]
local meta = call('HMGET', META, 'inc', 'line', 'head', 'ts', 'lost', 'bytes', 'freed', field)
if meta[1] ~= ARGV[1] or not meta[3] or (VERIFY_EVERY_CALL and server_incarnation() ~= meta[1]) then
  return 'm'
end
local line, head, ts, record = meta[2], tonumber(meta[3]), tonumber(meta[4]), meta[8]
local now = clock()
local registers = string.sub(options, 1, 1) == 'r'
local owner, seen_key, code, first_item = '', '', '', 6
if options == 'x' or options == 'rx' then
  owner, seen_key, code, first_item = ARGV[6], ARGV[7], ARGV[8], 10
end
local count = code == '' and (#ARGV - first_item + 1) / 4 or tonumber(ARGV[9])

-- What is needed only when something is unusual is not even defined before.
local function producer_rules()
  -- include: lib_producers
  return recall, extend, add_producer
end

-- Who appends. `rest` of a record is what stands after its last number; none when this epoch is new.
local last, rest, refusal = 0, nil, nil
if record then
  local known_epoch, known_last, known_rest = string.match(record, '^(%d+) (%d+)( .*)$')
  if known_epoch == epoch then
    last, rest = tonumber(known_last), known_rest
  elseif not registers or tonumber(known_epoch) > tonumber(epoch) then
    refusal = 'f'
  end
elseif not registers then
  refusal = 'u'
end

-- Store that numbers from `first` to the call's last were answered `what`.
local function remember(first, what)
  local _, extend, add_producer = producer_rules()
  local upto = number + count - 1
  local segments = extend(rest and string.match(rest, '^ [^ ]* (.*)$') or '', first, what, upto)
  local changed = epoch .. ' ' .. digits(upto) .. ' ' .. what .. ' ' .. segments
  if record then
    call('HSET', META, field, changed)
  else
    add_producer(META, field, changed)
  end
end

-- Gateways with a live lease; the others are forgotten.
local channels, gateways = {}, ''
local leases = call('HGETALL', KEYS[3])
for i = 1, #leases, 2 do
  if tonumber(leases[i + 1]) > now then
    channels[#channels + 1] = 'rr:ch:' .. leases[i]
    gateways = gateways .. '\n' .. leases[i]
  else
    call('HDEL', KEYS[3], leases[i])
  end
end

local function answer(is_live, answers)
  return 'a\n' .. line .. '\n' .. digits(head) .. (is_live and '\n1\n' or '\n0\n') .. answers .. gateways
end

-- A key that was seen: `<first seq> <count> <ms>`. It goes before the producer check.
if seen_key ~= '' then
  local seen = call('HGET', KEYS[6], 'k' .. seen_key) or ''
  local first_seq, seen_count, seen_ms = string.match(seen, '^(%d+) (%d+) (%d+)$')
  if first_seq and now - seen_ms <= SEEN_MS then
    local answers = {}
    for i = 1, count do
      answers[i] = i <= tonumber(seen_count) and '=' .. digits(first_seq + i - 1) or '='
    end
    if not refusal and number == last + 1 then
      remember(number, '=' .. digits(first_seq - number))
    end
    return answer(#channels > 0, table.concat(answers, ' '))
  end
end

-- The producer check: last + 1 only; what is at or below last is a repeat.
if refusal then
  return refusal
elseif number > last + 1 then
  return 'e\n' .. digits(last + 1)
end
local repeats, repeated = '', 0
if number <= last then
  local recall = producer_rules()
  repeated = math.min(count, last + 1 - number)
  for i = 0, repeated - 1 do
    repeats = repeats .. recall(number + i, last, rest) .. ' '
  end
  if repeated == count then
    return answer(#channels > 0, repeats)
  end
  first_item = first_item + repeated * 4
end
local first_number = number + repeated

if code ~= '' then
  remember(first_number, '!' .. code .. '@' .. digits(head))
  return answer(#channels > 0, repeats .. string.rep('!' .. code .. ' ', count - repeated))
end

-- The runs that the messages name: nothing may follow a run's end.
local states
for i = first_item, #ARGV, 4 do
  local run = ARGV[i + 1]
  if run ~= '' then
    states = states or {}
    local state = states[run]
    if not state then
      state = { string.match(call('HGET', RUNS, run) or '', '^(%a) (%d+) (%d+) (%d+) (%d+)$') }
      if not state[1] then
        state = { 'o', epoch, 0, 0, is_new = true }
      end
      states[run] = state
    end
    if state[1] == 'e' then
      remember(first_number, '!run_ended@' .. digits(head))
      return 'x\n' .. digits(repeated + (i - first_item) / 4)
    end
    if string.sub(ARGV[i], 1, 1) == 'e' then
      state[1] = 'e'
    end
  end
end

-- From here on everything is written.
local lost, bytes, freed = tonumber(meta[5]), tonumber(meta[6]), tonumber(meta[7])
local freed_before, log_began = freed, head == 0
local stamp = digits(ts > now and ts or now)
local first_seq = digits(head + 1)
local seq = first_seq
local receivers = 0

-- The log's oldest go until those before the newest fit, at most `budget` of them.
local function make_room(newest, bytes_before, budget)
  local first = lost + 1
  while true do
    local oldest = call('XRANGE', LOG, first, first)[1]
    freed = oldest and tonumber(oldest[2][4]) or freed
    if bytes_before - freed <= LOG_MAX_BYTES or budget == 0 or first == newest then
      break
    end
    first, budget = first + 1, budget - 1
  end
  if first > lost + 1 then
    call('XTRIM', LOG, 'MINID', '=', first)
    lost = first - 1
  end
end

for i = first_item, #ARGV, 4 do
  local class, run, text_bytes, at, frame = ARGV[i], ARGV[i + 1], ARGV[i + 2], '', nil
  head = head + 1
  seq = digits(head)
  if run == '' then
    frame = '{"type":"text","seq":' .. seq .. ',"timestamp":' .. stamp .. ARGV[i + 3] .. '}}'
  else
    local state = states[run]
    local at_member = ''
    state[5] = state[5] or head
    if #class > 1 then
      class = string.sub(class, 1, 1)
      local track = class == 't' and 4 or 3
      at = digits(state[track])
      at_member = ',"at":' .. at
      state[track] = state[track] + text_bytes
    end
    frame = '{"type":"text","seq":' .. seq .. ',"timestamp":' .. stamp .. ARGV[i + 3] .. at_member .. '}}'
  end

  -- The log holds what is above `lost`; when it should exist and does not, it has expired.
  local budget, must_go = LOG_MAX_EVICTIONS, head - LOG_MAX_MESSAGES
  if must_go > lost then
    if must_go > lost + budget then
      must_go = lost + budget
    end
    budget, lost = budget - (must_go - lost), must_go
  end
  local is_added = head > lost + 1
  if is_added and run == '' then
    is_added = call('XADD', LOG, 'NOMKSTREAM', 'MINID', '=', lost + 1, seq, 'c', class, 'b', bytes, 'f', frame)
  elseif is_added then
    is_added = call('XADD', LOG, 'NOMKSTREAM', 'MINID', '=', lost + 1, seq, 'c', class, 'b', bytes, 'f', frame,
      'r', run, 'a', at, 'n', text_bytes)
  end
  if not is_added then
    lost, freed, log_began = head - 1, bytes, true
    call('XADD', LOG, seq, 'c', class, 'b', bytes, 'f', frame, 'r', run, 'a', at, 'n', text_bytes)
  end
  if bytes - freed > LOG_MAX_BYTES then
    make_room(head, bytes, budget)
  end
  bytes = bytes + #frame

  for j = 1, #channels do
    receivers = receivers + call('PUBLISH', channels[j], '1m\n' .. string.sub(META, 5, -7) .. '\n' .. line .. '\n' .. seq
      .. '\n' .. class .. '\n' .. run .. '\n' .. at .. '\n' .. text_bytes .. '\n' .. frame)
  end
end

-- The producer's record changes in its last number only as long as its messages follow each other.
local same = ' =' .. digits(first_seq - first_number) .. ' '
if rest and string.sub(rest, 1, #same) == same then
  call('HSET', META, 'head', seq, 'ts', stamp, 'lost', lost, 'bytes', bytes, field,
    epoch .. ' ' .. digits(number + count - 1) .. rest)
else
  call('HSET', META, 'head', seq, 'ts', stamp, 'lost', lost, 'bytes', bytes)
  remember(first_number, '=' .. digits(first_seq - first_number))
end
if freed ~= freed_before then
  call('HSET', META, 'freed', freed)
end
if owner ~= '' then
  call('HSETNX', META, 'owner', owner)
end

if states then
  -- include: lib_runs
  store_runs(RUNS, states)
end

if seen_key ~= '' then
  -- Slots `#<n>` hold the keys in the order of their arrival, `#` counts them.
  local arrival = call('HINCRBY', KEYS[6], '#', 1)
  local slot = '#' .. arrival % SEEN_MAX
  local oldest = call('HGET', KEYS[6], slot)
  if oldest then
    call('HDEL', KEYS[6], oldest)
  end
  call('HSET', KEYS[6], slot, 'k' .. seen_key, 'k' .. seen_key, first_seq .. ' ' .. count .. ' ' .. now)
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
    -- include: lib_runs
    keep_runs(RUNS)
  end
end

return answer(receivers > 0, repeats .. '+' .. first_seq)
