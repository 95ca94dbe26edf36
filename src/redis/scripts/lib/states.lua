-- State of an open reference, `pending|inflight|retrying` and what `try` says of it; '' when it is not open.
local function openState(pend, claims, try, key, ref, unordered)
  local member = key .. NUL .. ref
  if not redis.call('ZSCORE', pend, member) then return '' end
  local held = redis.call('HGET', claims, unordered and member or key)
  local text = redis.call('HGET', try, entryOf(key, ref)) or '0 0 0'
  if held and string.sub(held, -15) == ref then return 'inflight ' .. text end
  return (tries(text) > 0 and 'retrying ' or 'pending ') .. text
end
