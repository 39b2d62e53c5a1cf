-- The reorder window (design.md 6). The pending hash: `#` the index, a line for each message that waits: `<number> <waits
-- since ms> <bytes> <epoch> <c|r> <producer>`, c: `contiguous`, r: `reorder`; and for each line a field `<number> <epoch>
-- <producer>`: `<class> <text bytes> <kept ms, or 0> <run>`, newline, body; or `!<code>`: that number was refused.
-- What a number got is kept in the producer's record (lib_producers), with two answers more: `-` a hole that was given up,
-- `?` too long ago to be told. Here the record remembers the last 512 results, however far their numbers are apart.

local WINDOW_LINE = '^(%d+) (%d+) (%d+) (%d+) (%a) (.*)$'

local function read_window(pending)
  local waiting = {}
  for line in string.gmatch(redis.call('HGET', pending, '#') or '', '[^\n]+') do
    local number, since, size, epoch, order, producer = string.match(line, WINDOW_LINE)
    waiting[#waiting + 1] = { number = tonumber(number), since = tonumber(since), size = tonumber(size), epoch = epoch,
      order = order, producer = producer, is_stored = true, field = number .. ' ' .. epoch .. ' ' .. producer }
  end
  return waiting
end

local function store_window(pending, waiting)
  if #waiting == 0 then
    redis.call('DEL', pending)
    return
  end
  local lines = {}
  for i, it in ipairs(waiting) do
    lines[i] = digits(it.number) .. ' ' .. digits(it.since) .. ' ' .. digits(it.size) .. ' ' .. it.epoch .. ' '
      .. it.order .. ' ' .. it.producer
  end
  redis.call('HSET', pending, '#', table.concat(lines, '\n'))
  redis.call('PEXPIRE', pending, math.floor(META_MS * 4 / 3))
end

-- When the first of them has waited long enough, or nil.
local function window_due(waiting)
  local due
  for _, it in ipairs(waiting) do
    due = math.min(due or it.since, it.since)
  end
  return due and due + ORDER_WINDOW_MS
end

-- What a producer's numbers got. Without a record: last 0.
local function open_record(meta, producer, epoch)
  local stored = redis.call('HGET', meta, 'p:' .. producer)
  local known_epoch, last, what, segments = string.match(stored or '', RECORD)
  local its = { producer = producer, epoch = epoch, stored = stored, known_epoch = known_epoch, fresh = {} }
  if known_epoch == epoch then
    its.last, its.what, its.segments = tonumber(last), what, segments
  else
    its.last, its.what, its.segments = 0, '', ''
  end
  return its
end

local function answer_of(its, number)
  local answer = its.fresh[number] or '='
  for first, what in string.gmatch(its.fresh[number] and '' or its.segments, ';(%d+)([^;]+)') do
    if tonumber(first) > number then
      break
    end
    answer = what
  end
  if string.sub(answer, 1, 1) == '!' then
    return string.match(answer, '^[^@]+')
  elseif #answer > 1 then
    return '=' .. digits(number + string.sub(answer, 2))
  end
  return answer
end

-- Numbers from `first` on up to a new `last`.
local function append_answer(its, first, what, last)
  if what ~= its.what or its.segments == '' then
    its.segments = its.segments .. ';' .. digits(first) .. what
  end
  its.what, its.last, its.is_changed = what, last, true
  its.fresh[last] = what
end

-- One number inside a hole got its answer late.
local function replace_answer(its, number, what)
  local parts, place = {}, nil
  for first, found in string.gmatch(its.segments, ';(%d+)([^;]+)') do
    parts[#parts + 1] = { tonumber(first), found }
    if tonumber(first) <= number then
      place = #parts
    end
  end
  local hole, after = parts[place], parts[place + 1]
  local ends = after and after[1] - 1 or its.last
  table.remove(parts, place)
  for _, part in ipairs({ { hole[1], hole[2], number - 1 }, { number, what, number }, { number + 1, hole[2], ends } }) do
    if part[1] <= part[3] then
      table.insert(parts, place, part)
      place = place + 1
    end
  end
  local texts = {}
  for i, part in ipairs(parts) do
    texts[i] = ';' .. digits(part[1]) .. part[2]
  end
  its.segments, its.is_changed = table.concat(texts), true
end

-- Only the last PRODUCER_WINDOW results stay; whether there were holes among what goes is remembered.
local function trim_answers(its)
  local parts, held = {}, 0
  for first, what in string.gmatch(its.segments, ';(%d+)([^;]+)') do
    parts[#parts + 1] = { tonumber(first), what }
  end
  local from, ends = #parts + 1, its.last
  while from > 1 and held < PRODUCER_WINDOW do
    from = from - 1
    local first, what = parts[from][1], parts[from][2]
    if what ~= '-' and what ~= '?' then
      held = held + ends - first + 1
    end
    ends = first - 1
  end
  local texts = {}
  for i = 1, from - 1 do
    if parts[i][2] == '-' or parts[i][2] == '?' then
      texts[1] = ';1?'
    end
  end
  for i = from, #parts do
    texts[#texts + 1] = ';' .. digits(parts[i][1]) .. parts[i][2]
  end
  its.segments = table.concat(texts)
end

local function close_record(its)
  if not its.is_changed then
    return
  end
  if #its.segments > ANSWERS_MAX_BYTES then
    trim_answers(its)
  end
  local record = its.epoch .. ' ' .. digits(its.last) .. ' ' .. its.what .. ' ' .. its.segments
  if its.stored then
    redis.call('HSET', its.meta, 'p:' .. its.producer, record)
  else
    add_producer(its.meta, 'p:' .. its.producer, record)
  end
end

-- The message of a number, as the window holds it: class, text bytes, kept ms, run, body; or `code`.
local function unpack_message(text)
  if string.sub(text, 1, 1) == '!' then
    return { code = string.sub(text, 2) }
  end
  local class, text_bytes, kept_ms, run, at = string.match(text, '^(%S+) (%d+) (%d+) ([^\n]*)\n()')
  return { class = class, text_bytes = text_bytes, kept_ms = tonumber(kept_ms), run = run, body = string.sub(text, at) }
end

local function pack_message(it)
  if it.code then
    return '!' .. it.code
  end
  return it.class .. ' ' .. it.text_bytes .. ' ' .. digits(it.kept_ms) .. ' ' .. it.run .. '\n' .. it.body
end

-- The code with which a run refuses a message of somebody who is not its writer, or nil. `state`: nil where it is to begin.
local function run_refusal(state, class)
  if state and state.mode == 'e' then
    return 'run_ended'
  elseif state and state.writer ~= '0' and class ~= 'l' then
    return 'has_writer'
  end
end

-- Into the log, or refused: `=<seq - number>` or `!<code>@<head>`.
local function write_numbered(w, kept, number, message)
  local code = message.code
  if not code and message.run ~= '' then
    local state = read_run(w.meta, message.run)
    code = run_refusal(state, message.class)
    if not state then
      make_room(w, 1, {})
    end
  end
  if code then
    return '!' .. code .. '@' .. digits(w.head)
  end
  local seq, frame = write_message(w, message.class, message.run, message.text_bytes, message.body, message.kept_ms > 0)
  if message.kept_ms > 0 then
    keep_message(w, kept, seq, frame, message.kept_ms)
  end
  return '=' .. digits(seq - number)
end

-- A late one says so; then it is no longer just its text, so it is not merged with others.
local function mark_late(message)
  if message.code then
    return
  end
  message.body = '{"late":true,' .. string.sub(message.body, 2)
  local class, tail = string.match(message.class, '^(.)(.*)$')
  if class == 't' then
    message.class, message.text_bytes = 'o', '0'
  elseif class == 'd' then
    message.class = 'o' .. tail
  end
end

-- The hole below `number` will not be filled any more.
local function give_up(w, its, number, order)
  local first, last = its.last + 1, number - 1
  if first > last then
    return
  end
  if order == 'c' then
    local name = string.gsub(string.gsub(its.producer, '^/push/', ''), '^/push$', 'push')
    write_message(w, 'o', '', '0', '{"kind":"producer_gap","producer":' .. json_text(name) .. ',"first":' .. digits(first)
      .. ',"last":' .. digits(last) .. ',"reason":"missing"', false)
    w.gaps = (w.gaps or 0) + 1
  end
  append_answer(its, first, '-', last)
end

-- Take from `waiting` what is next for one producer and epoch, and deliver it; `bodies` holds what is not stored yet.
local function drain(w, kept, pending, waiting, its, bodies)
  local place = 1
  local by_number = {}
  for _, it in ipairs(waiting) do
    if it.producer == its.producer and it.epoch == its.epoch then
      by_number[it.number] = it
    end
  end
  local it = by_number[its.last + 1]
  while it do
    local message = bodies[it.field] or unpack_message(redis.call('HGET', pending, it.field))
    append_answer(its, it.number, write_numbered(w, kept, it.number, message), it.number)
    if it.is_stored then
      redis.call('HDEL', pending, it.field)
    end
    it.is_gone, w.released = true, (w.released or 0) + 1
    it = by_number[its.last + 1]
  end
  while place <= #waiting do
    local one = waiting[place]
    local is_ours = one.producer == its.producer and one.epoch == its.epoch
    if one.is_gone or (is_ours and one.number <= its.last) then
      if not one.is_gone and one.is_stored then
        redis.call('HDEL', pending, one.field)
      end
      table.remove(waiting, place)
    else
      place = place + 1
    end
  end
end

-- The lowest number of a producer's epoch that waits.
local function lowest_of(waiting, producer, epoch)
  local lowest
  for _, it in ipairs(waiting) do
    if it.producer == producer and it.epoch == epoch and (not lowest or it.number < lowest.number) then
      lowest = it
    end
  end
  return lowest
end

-- The hole that `it` waits for is given up. `records`: those that are open, by producer.
local function advance(w, kept, pending, waiting, it, records, bodies)
  local its = records[it.producer]
  if not its or its.epoch ~= it.epoch then
    its = open_record(w.meta, it.producer, it.epoch)
    its.meta = w.meta
    if its.known_epoch and its.known_epoch ~= it.epoch then
      its.is_former = true -- a newer epoch goes on meanwhile: what was taken in is delivered, its answers are forgotten
    else
      records[it.producer] = its
    end
  end
  local lowest = lowest_of(waiting, it.producer, it.epoch)
  give_up(w, its, lowest.number, its.is_former and 'r' or it.order)
  drain(w, kept, pending, waiting, its, bodies)
end

-- All that has waited long enough, of every producer, the longest waiting first.
local function release_overdue(w, kept, pending, waiting, records, bodies)
  while true do
    local oldest
    for _, it in ipairs(waiting) do
      if it.since + ORDER_WINDOW_MS <= w.now_ms and (not oldest or it.since < oldest.since) then
        oldest = it
      end
    end
    if not oldest then
      return
    end
    advance(w, kept, pending, waiting, oldest, records, bodies)
  end
end

-- Beyond the bounds the oldest hole is given up at once.
local function release_surplus(w, kept, pending, waiting, records, bodies)
  while true do
    local bytes, oldest = 0, nil
    for _, it in ipairs(waiting) do
      bytes = bytes + it.size
      if not oldest or it.since < oldest.since then
        oldest = it
      end
    end
    if #waiting <= ORDER_MAX_MESSAGES and bytes <= ORDER_MAX_BYTES then
      return
    end
    advance(w, kept, pending, waiting, oldest, records, bodies)
  end
end

-- For scripts that only pass by.
local function release_pending(w, kept, pending)
  local waiting, records = read_window(pending), {}
  local count = #waiting
  if count > 0 then
    release_overdue(w, kept, pending, waiting, records, {})
    for _, its in pairs(records) do
      close_record(its)
    end
    if #waiting < count then
      store_window(pending, waiting)
    end
  end
  return waiting
end
