-- Room for the runs that an append begins: the open ones that are in their way end first, by messages before its own. Statements
-- of append.lua, like lib_entry, in a file of their own.

  -- include: lib_server
  -- include: lib_producers
  -- include: lib_runs
  local surplus = surplus_runs(META, most, modes)
  if not surplus then
    remember(META, field, record, segments, epoch, first_number, upto, '!too_many_runs@' .. digits(head))
    return 'n\n' .. digits(first_number - number + (most_at - first_item) / 4)
  end
  local payload_head = match(ARGV[first_item + 3], '^.-,"payload":')
  for place, state in ipairs(surplus) do
    -- One message more for the loop below, before those of the caller; its run's state is read there.
    local body = end_body(state.name, state, 'abandoned', '')
    tell_writer(META, state.name, body .. '}')
    for offset, part in ipairs({ 'e', state.name, '0', payload_head .. body }) do
      table.insert(ARGV, first_item + (place - 1) * 4 + offset - 1, part)
    end
    run, mode, first_seq = '', nil, first_seq + 1
  end
