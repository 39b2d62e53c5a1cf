#!lua
-- offer: append for messages that wait for their turn (`order`) or are kept for those who connect later; whole or not at all.
-- KEYS 1 meta, 2 log, 3 gws, 4 clients, 5 seen, 6 kept, 7 pending, 8 absent
-- ARGV 1 incarnation, 2 head of the frames, 3 producer, 4 its epoch, 5 first number, 6 `r` if this call may register that epoch,
--      7 order: `c`, `r` or empty, 8 kept (ms) or 0, 9 due note or empty, 10 owner, 11 idempotency key, 12 code and 13 count: the
--      numbers are consumed as refused; then for each message: class with `+<tail bytes>` if its text counts, run, text bytes,
--      body
-- Result, lines of text:
--   a <line> <told head> <live> <holes given up> <ms until the window is due, or empty> <first message kept until, or empty>
--     <answers> <gateway>...  answers, one a message: `+<seq>` appended, `~<seq>` appended late, `?` waits, `=<seq>` and `=`
--     repeat, `!<code>` refused
--   e <number>   the number that is expected (without order)
--   x <index>    refused: that message's run has ended
--   w <index>    refused: its run has a writer, and the message is more than `tool` (append.lua)
--   n <index>    refused: more runs would be open at once than a session retains
--   l <index>    refused: it is late
--   u, f, d      refused: producer unknown, fenced, due note stale
--   m            nothing done: call `enter`, then again

-- include: lib_server
-- include: lib_due
-- include: lib_runs
-- include: lib_producers
-- include: lib_write
-- include: lib_outbox
-- include: lib_kept
-- include: lib_order

local META, SEEN, KEPT, PENDING = KEYS[1], KEYS[5], KEYS[6], KEYS[7]
local producer, epoch, number, order = ARGV[3], ARGV[4], tonumber(ARGV[5]), ARGV[7]
local kept_ms, due, owner, seen_key, code = tonumber(ARGV[8]), ARGV[9], ARGV[10], ARGV[11], ARGV[12]
local FIRST_ITEM = 14
local count = code ~= '' and tonumber(ARGV[13]) or (#ARGV - FIRST_ITEM + 1) / 4
local upto = number + count - 1
local now = clock()

local w = open_writer(META, KEYS[2], KEYS[3], ARGV[1], now, ARGV[2])
if not w then
  return 'm'
end
w.clients = KEYS[4]

-- What is overdue comes first, whoever asks.
local waiting, records, bodies = read_window(PENDING), {}, {}
local waited = #waiting
release_overdue(w, KEPT, PENDING, waiting, records, bodies)

local function finish(answer)
  for _, its in pairs(records) do
    close_record(its)
  end
  if waited > 0 or #waiting > 0 then
    store_window(PENDING, waiting)
  end
  close_writer(w)
  return answer
end

local its = records[producer]
if not its or its.epoch ~= epoch then
  its = open_record(META, producer, epoch)
  its.meta = META
end
if its.known_epoch ~= epoch and not its.is_changed then
  if ARGV[6] ~= 'r' then
    return finish(its.known_epoch and 'f' or 'u')
  elseif its.known_epoch and tonumber(its.known_epoch) > tonumber(epoch) then
    return finish('f')
  end
  its.what, its.is_changed = '@' .. digits(w.head), true
end
records[producer] = its

local function message_at(n)
  if code ~= '' then
    return { code = code }
  end
  local i = FIRST_ITEM + (n - number) * 4
  return { class = ARGV[i], run = ARGV[i + 1], text_bytes = ARGV[i + 2], body = ARGV[i + 3], kept_ms = kept_ms }
end

local function answer(words)
  local due_at = window_due(waiting)
  local first = string.match(words[1], '^[+=~](%d+)$')
  local kept_text = kept_ms > 0 and first and redis.call('HGET', KEPT, 'k:' .. first)
  local lines = { 'a', w.line, writer_head(w), w.receivers > 0 and '1' or '0', w.gaps or 0,
    due_at and digits(math.max(0, due_at - now)) or '', kept_text and string.match(kept_text, '^%d+') or '',
    table.concat(words, ' ') }
  return finish(table.concat(lines, '\n') .. w.gateways)
end

-- A key that was seen: `<first seq> <count> <ms>` (append.lua). Numbers in an order are enough by themselves.
local seen = seen_key ~= '' and order == '' and redis.call('HGET', SEEN, 'k' .. seen_key) or ''
local first_seq, seen_count, seen_ms = string.match(seen, '^(%d+) (%d+) (%d+)$')
if first_seq and now - seen_ms <= SEEN_MS then
  local words = {}
  for i = 1, count do
    words[i] = i <= tonumber(seen_count) and '=' .. digits(first_seq + i - 1) or '='
  end
  if number == its.last + 1 then
    append_answer(its, number, '=' .. digits(first_seq - number), upto)
  end
  return answer(words)
end

-- What each number is, before anything of this call is written.
if order == '' and number > its.last + 1 then
  return finish('e\n' .. digits(its.last + 1))
end
local known, waits_already, is_fresh = {}, {}, not is_note_stale(due, now)
for _, it in ipairs(waiting) do
  if it.producer == producer and it.epoch == epoch then
    waits_already[it.number] = it
  end
end
for n = number, math.min(upto, its.last) do
  local got = answer_of(its, n)
  if got == '?' or (got == '-' and (not ACCEPT_LATE or order == '')) then
    return finish('l\n' .. digits(n - number))
  end
  known[n] = got
end

-- Its next numbers are consumed; one that waits was promised its turn, and has it.
local function refuse_batch(with)
  local last = its.last
  while last < upto and not waits_already[last + 1] do
    last = last + 1
  end
  if last > its.last then
    append_answer(its, its.last + 1, '!' .. with .. '@' .. digits(w.head), last)
    drain(w, KEPT, PENDING, waiting, its, bodies)
  end
end

local is_next, has_new, states = number <= its.last + 1, false, {}
local more, most, most_at = 0, 0, nil -- open runs, beside those of now
for n = number, upto do
  if not waits_already[n] and (not known[n] or known[n] == '-') then
    has_new = true
    local message = message_at(n)
    if is_next and (message.run or '') ~= '' then
      local state = states[message.run] or read_run(META, message.run)
      local code = run_refusal(state, message.class)
      if code then
        refuse_batch(code)
        return finish((code == 'has_writer' and 'w\n' or 'x\n') .. digits(n - number))
      elseif not state and not is_fresh then
        return finish('d')
      end
      if not state then
        more = more + 1
        if more > most then
          most, most_at = more, n
        end
        state = { mode = 'o', writer = '0' }
      end
      if string.sub(message.class, 1, 1) == 'e' then
        state.mode, more = 'e', more - 1
      end
      states[message.run] = state
    end
  end
end
if has_new and not is_fresh and (kept_ms > 0 or not is_next) then
  return finish('d')
elseif most > 0 and not make_room(w, most, states) then
  refuse_batch('too_many_runs')
  return finish('n\n' .. digits(most_at - number))
end

-- From here on everything of this call is written.
local words, before = {}, w.head
for n = number, upto do
  if known[n] and known[n] ~= '-' then
    words[n - number + 1] = known[n]
  elseif known[n] then
    local message = message_at(n)
    mark_late(message)
    local what = write_numbered(w, KEPT, n, message)
    replace_answer(its, n, what)
    words[n - number + 1] = message.code and '!' .. message.code or '~' .. digits(w.head)
  elseif not waits_already[n] then
    local message = message_at(n)
    local field = digits(n) .. ' ' .. epoch .. ' ' .. producer
    bodies[field] = message
    waiting[#waiting + 1] = { number = n, since = now, size = #(message.body or ''), epoch = epoch, producer = producer,
      order = order == 'c' and 'c' or 'r', field = field }
  end
end
drain(w, KEPT, PENDING, waiting, its, bodies)
release_surplus(w, KEPT, PENDING, waiting, records, bodies)
for _, it in ipairs(waiting) do
  if not it.is_stored then
    redis.call('HSET', PENDING, it.field, pack_message(bodies[it.field]))
  end
end
for n = number, upto do
  if not words[n - number + 1] then
    local got = n <= its.last and answer_of(its, n) or '?'
    words[n - number + 1] = string.sub(got, 1, 1) == '=' and '+' .. string.sub(got, 2) or got
  end
end
if owner ~= '' then
  redis.call('HSETNX', META, 'owner', owner)
end
if seen_key ~= '' and order == '' and w.head > before then
  local slot = '#' .. redis.call('HINCRBY', SEEN, '#', 1) % SEEN_MAX
  local oldest = redis.call('HGET', SEEN, slot)
  if oldest then
    redis.call('HDEL', SEEN, oldest)
  end
  redis.call('HSET', SEEN, slot, 'k' .. seen_key, 'k' .. seen_key, digits(before + 1) .. ' ' .. count .. ' ' .. digits(now))
  keep(SEEN, SEEN_MS)
end
return answer(words)
