-- Health of a subscription's endpoint: the field `health` of I:s:<sub>, absent while the last attempt succeeded, so that
-- an endpoint that works costs nothing. One text:
--   since failures next pause probe[ disabled why]
--   since     when the first attempt failed since one succeeded, ms; failures: attempts that failed from then on
--   next      while the breaker is open: nothing is claimed before, ms; pause: ms between probes, 0: it is closed
--   probe     token of the claim that probes now, or -
--   disabled  when the endpoint was disabled, ms; why: gone (it answered 410) or failing (nothing else for five days)
-- What began before `enabled` (when its owner said that it works again, ms) does not count any more.
-- A function is made anew by each call of a script, called or not: these are made where there is something to do.
local function endpointHealth(key, now)
  local OPENS_AFTER, OPENS_WITHIN_MS, OPENS_AT_ONCE = 10, 30000, 100
  local FIRST_PAUSE_MS, LONGEST_PAUSE_MS = 1000, 60000
  local FAILING_MS, LEAST_FAILURES = 432000000, 10

  local function write(h)
    local text = string.format('%.0f %.0f %.0f %.0f %s', h.since, h.failures, h.next, h.pause, h.probe)
    if h.disabled then text = string.format('%s %.0f %s', text, h.disabled, h.why) end
    redis.call('HSET', key, 'health', text)
  end

  -- What `text` says, or nil: of an endpoint that works, or was enabled since.
  local function read(text)
    if not text then return nil end
    local since, failures, next, pause, probe, rest = string.match(text, '^(%d+) (%d+) (%d+) (%d+) (%S+)(.*)$')
    local disabled, why = string.match(rest, '^ (%d+) (%a+)$')
    local h = {
      since = tonumber(since),
      failures = tonumber(failures),
      next = tonumber(next),
      pause = tonumber(pause),
      probe = probe,
      disabled = tonumber(disabled or false),
      why = why,
    }
    -- No pause and no lease is longer: the clock was set back.
    if h.next > now + LONGEST_PAUSE_MS then h.next = now end
    local enabled = tonumber(redis.call('HGET', key, 'enabled') or '0')
    if enabled <= (h.disabled or h.since) then return h end
    if enabled <= now then
      redis.call('HDEL', key, 'health')
      return nil
    end
    -- Not yet, or an endpoint that is gone would be called again and again until then.
    h.enabled = enabled
    return h
  end

  return {
    read = read,

    -- Of an open breaker: the claim of this token probes. If whoever makes it dies, the next one may when `lease` passed.
    -- After a rest, as between retries that are hours apart, pauses begin small again: a few lanes are hardly late.
    probe = function(h, token, lease)
      if now - h.next > 10 * h.pause then h.pause = FIRST_PAUSE_MS / 2 end
      h.next, h.probe = lease, token
      write(h)
    end,

    -- After `failed` attempts that failed, of the claims of these tokens, with no success beside them. `gone`: one of them
    -- was answered with 410. Returns true when that disabled the endpoint.
    failed = function(text, failed, gone, tokens)
      local h = read(text) or { since = now, failures = 0, next = 0, pause = 0, probe = '-' }
      if h.disabled then return false end
      h.failures = h.failures + failed
      if gone or (now - h.since >= FAILING_MS and h.failures >= LEAST_FAILURES) then
        h.disabled, h.why = now, gone and 'gone' or 'failing'
      elseif h.pause == 0 then
        if h.failures >= OPENS_AT_ONCE or (h.failures >= OPENS_AFTER and now - h.since >= OPENS_WITHIN_MS) then
          h.pause = FIRST_PAUSE_MS
          h.next = now + h.pause
        end
      elseif tokens[h.probe] then
        h.pause = math.min(2 * h.pause, LONGEST_PAUSE_MS)
        h.next, h.probe = now + h.pause, '-'
      end
      write(h)
      return h.disabled ~= nil
    end,

    -- After one that succeeded. What disabled the endpoint stands: others were on their way when it did.
    succeeded = function(text)
      local h = read(text)
      if h and not h.disabled then redis.call('HDEL', key, 'health') end
    end,

    -- A claim that was to probe may have been given back: the next one may.
    released = function(text, tokens)
      local h = read(text)
      if not h or h.disabled or not tokens[h.probe] then return end
      h.next, h.probe = now, '-'
      write(h)
    end,
  }
end
