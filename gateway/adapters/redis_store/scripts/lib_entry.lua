-- One message: its place in the log, its run's text, the gateways' channels. Statements, not a function: `append` has them in
-- its loop, because a closure costs as much as a call to Redis, and lib_write in a function for all others.
-- From whoever includes this: `class` with `+<bytes>` when its text counts (the escaped text and its quote at the end of
-- `rest`), `name` of its run or '', `text_bytes`, `rest` of the frame from after its timestamp to before `at`, `is_kept`.

  head = head + 1
  seq = format('%d', head)
  local at, at_member, is_rebuilt = '', '}}', is_kept
  if name ~= '' then
    if name ~= run or not mode then
      -- Another run than that of the message before, or one that begins.
      -- include: lib_server
      -- include: lib_runs
      if mode then
        call('HSET', META, 'r:' .. run, mode .. ' ' .. run_seq .. ' ' .. lease .. ' ' .. text .. ' ' .. text_seq .. ' '
          .. text_kept .. ' ' .. thinking .. ' ' .. thinking_seq .. ' ' .. thinking_kept .. origin)
      end
      run = name
      local record = call('HGET', META, 'r:' .. run)
      if not record then
        total = format('%d', total - begin_run(META, run, '0', seq, now))
        record = call('HGET', META, 'r:' .. run)
      end
      mode, text, text_seq, text_kept, thinking, thinking_seq, thinking_kept, origin = match(record, RUN)
      lease = now + (sub(origin, 1, 3) == ' 0 ' and RUN_PUSH_LEASE_MS or RUN_LEASE_MS)
      text_key, think_key = text_keys(META, run)
    end
    run_seq = seq
    if #class > 1 then
      local tail_bytes = sub(class, 3) + 0
      class = sub(class, 1, 1)
      if class == 't' then
        at = thinking
        local kept = thinking_kept
        thinking, thinking_seq = format('%d', thinking + text_bytes), seq
        if tail_bytes > 0 and kept == at and kept + text_bytes <= TEXT_MAX_BYTES
          and total + text_bytes <= SESSION_TEXT_MAX_BYTES then
          if tail_bytes > 1 then
            call('APPEND', think_key, sub(rest, -tail_bytes, -2))
            if kept == '0' then
              call('PEXPIRE', think_key, math.floor(META_MS * 4 / 3))
            end
          end
          thinking_kept, total, is_rebuilt = thinking, format('%d', total + text_bytes), true
        end
      else
        at = text
        local kept = text_kept
        text, text_seq = format('%d', text + text_bytes), seq
        if tail_bytes > 0 and kept == at and kept + text_bytes <= TEXT_MAX_BYTES
          and total + text_bytes <= SESSION_TEXT_MAX_BYTES then
          if tail_bytes > 1 then
            call('APPEND', text_key, sub(rest, -tail_bytes, -2))
            if kept == '0' then
              call('PEXPIRE', text_key, math.floor(META_MS * 4 / 3))
            end
          end
          -- A delta with fields of its own (class o) has more than its text.
          text_kept, total, is_rebuilt = text, format('%d', total + text_bytes), class ~= 'o'
        end
      end
      at_member = ',"at":' .. at .. '}}'
    elseif class == 's' or class == 'e' then
      local _, head_end = string.find(rest, ',"payload":', 1, true)
      local payload = sub(rest, head_end + 1) .. '}'
      if class == 's' then
        is_rebuilt = call('HSETNX', META, 'i:' .. run, payload) == 1
      else
        mode, lease, is_rebuilt = 'e', now + RUN_MS, true
        call('HSET', META, 'z:' .. run, payload)
        -- Nobody goes on: neither the writer's state nor its gateway is needed.
        local progress = call('HGET', META, 's:' .. run)
        if progress then
          call('HSET', META, 's:' .. run, match(progress, '^%d+ %d+ ') .. '\n')
        end
        call('PEXPIRE', text_key, math.floor(RUN_MS * 4 / 3))
        call('PEXPIRE', think_key, math.floor(RUN_MS * 4 / 3))
      end
    end
  end
  local frame = '{"type":"text","seq":' .. seq .. ',"timestamp":' .. stamp .. rest .. at_member

  -- The log holds what is above `lost`; when it should exist and does not, it has expired.
  local header = class .. ' ' .. bytes
  if name ~= '' or plain then
    header = header .. ' ' .. at .. ' ' .. text_bytes .. ' ' .. (plain or '') .. ' ' .. name
  end
  local budget, must_go, is_added = LOG_MAX_EVICTIONS, head - LOG_MAX_MESSAGES, false
  if must_go > lost and head > lost + 1 then
    must_go = math.min(must_go, lost + budget)
    budget, lost = budget - (must_go - lost), must_go
    is_added = call('XADD', LOG, 'NOMKSTREAM', 'MINID', '=', lost + 1, seq, 'h', header, 'f', frame)
  elseif head > lost + 1 then
    is_added = call('XADD', LOG, 'NOMKSTREAM', seq, 'h', header, 'f', frame)
  end
  if not is_added then
    lost, freed, log_began = head - 1, bytes + 0, true
    call('XADD', LOG, seq, 'h', header, 'f', frame)
  end

  -- The oldest go until those before the newest fit, at most `budget` of them.
  if bytes - freed > LOG_MAX_BYTES then
    local first = lost + 1
    while true do
      local oldest = call('XRANGE', LOG, first, first)[1]
      freed = oldest and match(oldest[2][2], '^%a (%d+)') + 0 or freed
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
  bytes = format('%d', bytes + #frame)
  if not is_rebuilt then
    plain = nil
  elseif not plain then
    plain = format('%d', head - 1)
  end

  for j = 1, HOLDS and 0 or #channels do
    receivers = receivers + call('PUBLISH', channels[j], '1m\n' .. sub(META, 5, -7) .. '\n' .. line .. '\n' .. seq
      .. '\n' .. class .. '\n' .. name .. '\n' .. at .. '\n' .. text_bytes .. '\n' .. frame)
  end
