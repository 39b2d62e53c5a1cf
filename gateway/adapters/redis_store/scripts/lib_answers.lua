-- What the numbers of a producer with an order got: its record (lib_producers), with two answers more: `-` a hole that was given
-- up, `?` too long ago to be told. Here the record remembers the last 512 results, however far their numbers are apart.

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
