#!lua
-- append: producer check, sequence, log, publication of 1..n messages, whole or not at all (redis.md, design.md 4).
-- KEYS 1 meta, 2 log, 3 gws, 4 clients, 5 seen, then text and thinking of each run that the messages name
-- ARGV 1 incarnation, 2 `p:<producer>`, 3 its epoch, 4 first number, 5 options, letters in this order, with more arguments:
--        s  run, input offset, `<gateway>\n<state>`: how far the run's input is, stored with the messages
--        c  the offset that must be stored so far
--        r  (none) this call may register that epoch
--        x  owner, idempotency key, code, count (the numbers are consumed as refused with the code, nothing is appended),
--           Redis time (ms) of a due note
--      then for each message: class, with `+<bytes of the escaped text and its quote>` if its text counts; run; text bytes;
--      the frame from after its timestamp to before `at`
-- Result, lines of text:
--   a <line> <told head> <live> <answers> <gateway>...   answers: for each repeat `=<seq>`, `=` or `!<code>`, then `+<seq>`: the
--                                                   others were appended from that seq on
--   e <number>   the number that is expected
--   v <offset>   nothing done: another offset is stored, or the number was used
--   x <index>    refused: message <index> (from 0) belongs to a run that has ended
--   w <index>    refused: it would be text, begin or end of a run that has a writer, by somebody else
--   n <index>    refused: with it more runs would be open at once than a session retains
--   d            refused: a run begins, and the due note is missing or old
--   u, f         refused: producer unknown, fenced
--   m            nothing done: no meta, a tombstone, or meta names another server: call `enter`, then again

-- The common path (the next number of a known producer, no run or one that is open) defines no function: each closure costs
-- as much as a call to Redis. What is unusual is included where it is needed.

local call, format, match, sub = redis.call, string.format, string.match, string.sub
local RUN = '^(%a) %d+ %d+ (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)( %d+ %d+)$'
local META, LOG = KEYS[1], KEYS[2]
local field, epoch, number, options = ARGV[2], ARGV[3], ARGV[4] + 0, ARGV[5]
local first_item = 6
if options == 's' then
  first_item = 9
elseif options ~= '' and options ~= 'r' then
  for letter in string.gmatch(options, '.') do
    first_item = first_item + (letter == 's' and 3 or letter == 'c' and 1 or letter == 'x' and 5 or 0)
  end
end
local run, meta = ARGV[first_item + 1] or '', nil
local text_key, think_key = KEYS[6], KEYS[7]
if run == '' then
  meta = call('HMGET', META, 'inc', 'line', 'log', field)
else
  meta = call('HMGET', META, 'inc', 'line', 'log', field, 'r:' .. run)
end
if meta[1] ~= ARGV[1] or not meta[3] then
  return 'm'
end
if VERIFY_EVERY_CALL then
  -- include: lib_server
  if server_incarnation() ~= meta[1] then
    return 'm'
  end
end
local line, record = meta[2], meta[4]
local head, ts, lost, bytes, freed, plain, total = match(meta[3], '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
plain = plain ~= head and plain -- false where the head cannot be rebuilt
head, ts, lost, freed = head + 0, ts + 0, lost + 0, freed + 0
local time = call('TIME')
local now = time[1] * 1000 + (time[2] - time[2] % 1000) / 1000

-- Gateways with a live lease.
local channels, gateways = {}, ''
local leases = call('GET', KEYS[3])
if leases then
  local lease, gateway = match(leases, '^(%d+) ([^\n]+)$')
  if not lease then
    for until_ms, name in string.gmatch(leases, '(%d+) ([^\n]+)') do
      if until_ms + 0 > now then
        channels[#channels + 1] = 'rr:ch:' .. name
        gateways = gateways .. '\n' .. name
      end
    end
  elseif lease + 0 > now then
    channels[1], gateways = 'rr:ch:' .. gateway, '\n' .. gateway
  end
end

-- Who appends: the next number of a known epoch whose last one was appended, or something unusual.
local known_epoch, last, shift, segments
if record then
  known_epoch, last, shift, segments = match(record, '^(%d+) (%d+) =(%-?%d+) (.*)$')
end
local upto, repeats = number + (#ARGV - first_item - 3) / 4, ''
local first_number, owner, seen_key, due = number, '', '', ''
if known_epoch ~= epoch or number ~= last + 1 or (options ~= '' and options ~= 'r' and options ~= 's') or upto < number then
  -- include: lib_server
  -- include: lib_producers
  if record then
    local what
    known_epoch, last, what, segments = match(record, RECORD)
    last = tonumber(last)
  end
  local code, registers, refusal = '', string.find(options, 'r', 1, true), nil
  if sub(options, -1) == 'x' then
    owner, seen_key, code, due = ARGV[first_item - 5], ARGV[first_item - 4], ARGV[first_item - 3], ARGV[first_item - 1]
    upto = code == '' and upto or number - 1 + ARGV[first_item - 2]
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
    -- include: lib_visible
    return 'a\n' .. line .. '\n' .. told_head(seen_head(META, head)) .. (#channels > 0 and '\n1\n' or '\n0\n') .. answers
      .. gateways
  end

  -- A key that was seen: `<first seq> <count> <ms>`. It goes before the producer check.
  local seen = seen_key ~= '' and call('HGET', KEYS[5], 'k' .. seen_key) or ''
  local first_seq, seen_count, seen_ms = match(seen, '^(%d+) (%d+) (%d+)$')
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
  end
  -- Who shares an epoch shares its numbers: a number that was used is another one's, and so is an offset that moved. Whoever
  -- lets go what was held moves no offset.
  if sub(options, 2, 2) == 'c' then
    local stored = match(call('HGET', META, 's:' .. ARGV[6]) or '0', '^%d+')
    if stored ~= ARGV[9] or number <= last then
      return 'v\n' .. stored
    end
  end
  if number > last + 1 then
    return 'e\n' .. digits(last + 1)
  end
  while first_number <= last and first_number <= upto do
    repeats = repeats .. recall(first_number, last, segments) .. ' '
    first_number = first_number + 1
  end
  if first_number > upto and upto >= number then
    return answer(repeats)
  elseif code ~= '' then
    remember(META, field, record, segments, epoch, first_number, upto, '!' .. code .. '@' .. digits(head))
    return answer(repeats .. string.rep('!' .. code .. ' ', upto - first_number + 1))
  elseif upto < number then
    -- No message: the input went on without one.
    -- include: lib_runs
    local state = read_run(META, ARGV[6])
    if number <= last then
      return 'e\n' .. digits(last + 1)
    elseif not state or state.mode == 'e' then
      return 'x\n0'
    end
    state.lease = digits(now + (state.writer == '0' and RUN_PUSH_LEASE_MS or RUN_LEASE_MS))
    store_run(META, ARGV[6], state)
    call('HSET', META, 's:' .. ARGV[6], ARGV[7] .. ' ' .. digits(last) .. ' ' .. ARGV[8])
    return answer('')
  end
  if first_number > number then
    -- include: lib_runs
    first_item = first_item + (first_number - number) * 4
    run = ARGV[first_item + 1]
    meta[5] = run ~= '' and call('HGET', META, 'r:' .. run)
    text_key, think_key = text_keys(META, run)
  end
end

-- The run of the first message, as it is stored.
local mode, text, text_seq, text_kept, thinking, thinking_seq, thinking_kept, origin, lease, run_seq
if meta[5] then
  mode, text, text_seq, text_kept, thinking, thinking_seq, thinking_kept, origin = match(meta[5], RUN)
  lease = now + (sub(origin, 1, 3) == ' 0 ' and RUN_PUSH_LEASE_MS or RUN_LEASE_MS)
end

-- Nothing may follow a run's end, and none begins without a due note. A writer's run is there before its messages are, and
-- its text is the writer's alone (mode w): others may add `tool` messages only.
local modes
local more, most, most_at = 0, 0, nil -- open runs, beside those of now
local is_others = mode and sub(origin, 1, 3) ~= ' 0 ' and field ~= 'p:~run/' .. run
for i = first_item, #ARGV, 4 do
  local name = ARGV[i + 1]
  if name ~= '' and (name ~= run or mode ~= 'o' or modes or is_others or sub(ARGV[i], 1, 1) == 'e') then
    modes = modes or { [run] = is_others and mode == 'o' and 'w' or mode }
    if not modes[name] then
      local known, writer = match(call('HGET', META, 'r:' .. name) or 'n 0 0', '^(%a).* (%d+) %d+$')
      modes[name] = known == 'o' and writer ~= '0' and field ~= 'p:~run/' .. name and 'w' or known
    end
    if modes[name] == 'n' and field ~= 'p:~run/' .. name then
      if due == '' or now - due > DUE_NOTE_MS then
        return 'd'
      end
      modes[name], more = 'o', more + 1
      if more > most then
        most, most_at = more, i
      end
    end
    local has_writer = modes[name] == 'w'
    if not (modes[name] == 'o' or has_writer and ARGV[i] == 'l') then
      -- include: lib_server
      -- include: lib_producers
      local code = has_writer and '!has_writer@' or '!run_ended@'
      remember(META, field, record, segments, epoch, first_number, upto, code .. digits(head))
      return (has_writer and 'w\n' or 'x\n') .. digits(first_number - number + (i - first_item) / 4)
    end
    if sub(ARGV[i], 1, 1) == 'e' then
      modes[name], more = 'e', more - 1
    end
  end
end
local first_seq, first_head = head + 1, head
if most > 0 then
  -- include: lib_room
end

-- From here on everything is written.
local log_began = head == 0
local stamp = format('%d', ts > now and ts or now)
local receivers, seq, is_kept = 0, nil, false
for i = first_item, #ARGV, 4 do
  local class, name, text_bytes, rest = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  -- include: lib_entry
end

-- A producer's record changes in its last number only as long as its messages follow each other in the session.
if shift and known_epoch == epoch and first_seq - first_number == shift + 0 then
  record = epoch .. ' ' .. (upto == number and ARGV[4] or format('%d', upto)) .. ' =' .. shift .. ' ' .. segments
else
  -- include: lib_server
  -- include: lib_producers
  if not record then
    count_producer(META)
  end
  record = answered(segments, epoch, first_number, upto, '=' .. digits(first_seq - first_number))
end
local log = seq .. ' ' .. stamp .. ' ' .. format('%d', lost) .. ' ' .. bytes .. ' ' .. format('%d', freed) .. ' '
  .. (plain or seq) .. ' ' .. total
if not mode then
  call('HSET', META, 'log', log, field, record)
else
  local state = mode .. ' ' .. run_seq .. ' ' .. format('%d', lease) .. ' ' .. text .. ' ' .. text_seq .. ' ' .. text_kept
    .. ' ' .. thinking .. ' ' .. thinking_seq .. ' ' .. thinking_kept .. origin
  if sub(options, 1, 1) == 's' then
    call('HSET', META, 'log', log, field, record, 'r:' .. run, state, 's:' .. ARGV[6],
      ARGV[7] .. ' ' .. format('%d', upto) .. ' ' .. (mode == 'e' and '\n' or ARGV[8]))
  else
    call('HSET', META, 'log', log, field, record, 'r:' .. run, state)
  end
end
if owner ~= '' then
  call('HSETNX', META, 'owner', owner)
end
if seen_key ~= '' then
  -- include: lib_server
  -- Slots `#<n>` hold the keys in the order of their arrival, `#` counts them.
  local arrival = call('HINCRBY', KEYS[5], '#', 1)
  local slot = '#' .. arrival % SEEN_MAX
  local oldest = call('HGET', KEYS[5], slot)
  if oldest then
    call('HDEL', KEYS[5], oldest)
  end
  call('HSET', KEYS[5], slot, 'k' .. seen_key, 'k' .. seen_key,
    digits(first_seq) .. ' ' .. digits(upto - number + 1) .. ' ' .. stamp)
  keep(KEYS[5], SEEN_MS)
end

-- Times to live are looked at by the first append in each quarter of what was set, so that what remains is never less than
-- three quarters. A clock that went back has no quarters: always.
if ts < now - now % LOG_STEP_MS or ts > now or log_began then
  call('PEXPIRE', LOG, LOG_STEP_MS * 4)
  if call('PTTL', META) < META_MS then
    call('PEXPIRE', META, math.floor(META_MS * 4 / 3))
  end
  if call('PTTL', KEYS[4]) < META_MS then
    call('PEXPIRE', KEYS[4], math.floor(META_MS * 4 / 3))
  end
  if mode == 'o' then
    call('PEXPIRE', text_key, math.floor(META_MS * 4 / 3))
    call('PEXPIRE', think_key, math.floor(META_MS * 4 / 3))
  end
end

if HOLDS then
  -- include: lib_visible
  hold(META, first_head, head, '')
  seq = told_head(seen_head(META, head))
end
return 'a\n' .. line .. '\n' .. seq .. (receivers > 0 and '\n1\n' or '\n0\n') .. repeats .. '+' .. format('%d', first_seq)
  .. gateways
