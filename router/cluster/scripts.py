"""What Redis does in one step, as Lua scripts.

A *token* is a number that only grows: the server's time in microseconds, or one more than the last
token where the clock has stepped back. Whoever holds an older token than what is stored is late,
and is refused. Were the last token lost (evicted, flushed), the time alone keeps the order.
"""

from __future__ import annotations

from typing import Final

_SHARED: Final = """
local function new_token(key)
  local time = redis.call('TIME')
  local token = time[1] * 1000000 + time[2]
  local last = tonumber(redis.call('GET', key) or '0')
  if token <= last then token = last + 1 end
  redis.call('SET', key, string.format('%.0f', token))
  return token
end
local function append(stream, length, ...)
  local last = redis.call('XREVRANGE', stream, '+', '-', 'COUNT', 1)
  local before = ''
  if #last > 0 then before = last[1][1] end
  redis.call('XADD', stream, 'MAXLEN', '~', length, '*', 'before', before, ...)
end
"""

KEEP: Final = (
    _SHARED
    + """
-- Keep an answer, unless it is late. Keys: answer, dropped, lease, catalog, token, stream.
-- Arguments: catalog version, token or '', answer, life in ms, late after us, length of the stream,
-- kind of the stream's record ('learn', or 'replace' where it is for identical requests only),
-- text, context, and who decided. Only a person replaces what a person said over this catalog. A
-- decision with a token that began before the person spoke is late already.
if redis.call('HGET', KEYS[4], 'version') ~= ARGV[1] then return 'catalog' end
local newest = new_token(KEYS[5])
local token = tonumber(ARGV[2]) or newest
if newest - token > tonumber(ARGV[5]) then return 'late' end
for _, key in ipairs({KEYS[2], KEYS[3]}) do
  local other = tonumber(redis.call('GET', key) or '0')
  if other > token then return 'late' end
end
local held = tonumber(redis.call('GETRANGE', KEYS[1], 0, 19))
if held and held > token then return 'late' end
if held and ARGV[2] == '' and ARGV[10] ~= 'person' then
  local value = string.sub(redis.call('GET', KEYS[1]), 21)
  local read, basis = pcall(function() return cjson.decode(cjson.decode(value)[2]) end)
  if read and type(basis) == 'table' and basis[1] == 'person' and basis[2] == ARGV[1] then
    return 'late'
  end
end
redis.call('SET', KEYS[1], string.format('%020.0f', token) .. ARGV[3], 'PX', ARGV[4])
append(KEYS[6], ARGV[6], 'kind', ARGV[7], 'text', ARGV[8], 'context', ARGV[9])
return 'kept'
"""
)

DROP: Final = (
    _SHARED
    + """
-- Drop an answer; one that was decided before now is not kept any more. Keys: answer, dropped,
-- token, stream. Arguments: life of the note in ms, length of the stream, text, context.
redis.call('SET', KEYS[2], string.format('%.0f', new_token(KEYS[3])), 'PX', ARGV[1])
redis.call('DEL', KEYS[1])
append(KEYS[4], ARGV[2], 'kind', 'drop', 'text', ARGV[3], 'context', ARGV[4])
return 'dropped'
"""
)

JOIN: Final = (
    _SHARED
    + """
-- Take the lease, or learn who has it. Keys: lease, outcome, token. Arguments: life in ms, the
-- token of whom the caller has waited for or ''.
if ARGV[2] ~= '' and redis.call('HGET', KEYS[2], 'token') == ARGV[2] then
  return {'outcome', redis.call('HGET', KEYS[2], 'result')}
end
local holder = redis.call('GET', KEYS[1])
if holder then return {'wait', holder} end
local token = string.format('%.0f', new_token(KEYS[3]))
redis.call('SET', KEYS[1], token, 'PX', ARGV[1])
return {'lead', token}
"""
)

RENEW: Final = """
-- Whether the lease is still the caller's; then it lives on. Keys: lease. Arguments: token, life.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
"""

RELEASE: Final = """
-- Give the lease back. Keys: lease, outcome, dropped. Arguments: token, outcome or '', its life in
-- ms. Nobody is given an outcome whose request was dropped since.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
if ARGV[2] ~= '' and tonumber(redis.call('GET', KEYS[3]) or '0') < tonumber(ARGV[1]) then
  redis.call('HSET', KEYS[2], 'token', ARGV[1], 'result', ARGV[2])
  redis.call('PEXPIRE', KEYS[2], ARGV[3])
end
return 1
"""

BEAT: Final = """
-- Say that a process is alive and which catalog it has. The catalog that most have counts; where
-- two are equal, the one that counted before. Keys: members, versions, catalog. Arguments: process,
-- catalog version ('' where the process leaves), life in ms.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function leave(member)
  redis.call('ZREM', KEYS[1], member)
  redis.call('HDEL', KEYS[2], member)
end
for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now)) do leave(member) end
if ARGV[2] == '' then
  leave(ARGV[1])
else
  redis.call('ZADD', KEYS[1], now + ARGV[3], ARGV[1])
  redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
end
local has = {}
for _, version in ipairs(redis.call('HVALS', KEYS[2])) do has[version] = (has[version] or 0) + 1 end
local current = redis.call('HGET', KEYS[3], 'version')
local best, most = current, current and has[current] or 0
for version, number in pairs(has) do
  if number > most then best, most = version, number end
end
if best and best ~= current then redis.call('HSET', KEYS[3], 'version', best) end
return best or ''
"""

APPEND: Final = (
    _SHARED
    + """
-- Append records to a stream. Keys: stream. Arguments: its length, then each record as JSON.
for number = 2, #ARGV do append(KEYS[1], ARGV[1], 'kind', 'label', 'record', ARGV[number]) end
return #ARGV - 1
"""
)

PUBLISH: Final = """
-- Publish a model, unless somebody with a later lease has. Keys: lease, newest, model. Arguments:
-- token, digest, model, life in ms.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if tonumber(redis.call('HGET', KEYS[2], 'token') or '0') > tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[3], ARGV[3], 'PX', ARGV[4])
redis.call('HSET', KEYS[2], 'token', ARGV[1], 'digest', ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
return 1
"""

PUT_ENRICHMENTS: Final = (
    _SHARED
    + """
-- Keep enrichments, and announce those that are news. Keys: stream, then each enrichment.
-- Arguments: length of the stream, life in ms, then digest and line of each enrichment.
for number = 2, #KEYS do
  local digest, line = ARGV[2 * number - 1], ARGV[2 * number]
  local is_news = redis.call('GET', KEYS[number]) ~= line
  redis.call('SET', KEYS[number], line, 'PX', ARGV[2])
  if is_news then append(KEYS[1], ARGV[1], 'digest', digest) end
end
return #KEYS - 1
"""
)

CHANGE_TOOL: Final = (
    _SHARED
    + """
-- Put or drop a tool, unless a later change of it is known. Keys: tools of the source, definition,
-- token, stream. Arguments: source, name, digest ('' where the tool is dropped), definition, stamp
-- ('' for a change that is made now), life in ms, length of the stream, most names of a source.
local stamp = tonumber(ARGV[5]) or new_token(KEYS[3])
local held = redis.call('HGET', KEYS[1], ARGV[2])
if not held and redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[8]) then return 'full' end
if ARGV[3] ~= '' then redis.call('SET', KEYS[2], ARGV[4], 'PX', ARGV[6]) end
redis.call('PEXPIRE', KEYS[1], ARGV[6])
if held and (tonumber(string.match(held, '^%d+')) or 0) >= stamp then return 'late' end
redis.call('HSET', KEYS[1], ARGV[2], string.format('%.0f', stamp) .. ' ' .. ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[6])
append(KEYS[4], ARGV[7], 'source', ARGV[1], 'name', ARGV[2])
return 'kept'
"""
)

ASK_FOR_TOOLS: Final = (
    _SHARED
    + """
-- Ask every process to compare what it knows of tools with what is kept here. Keys: stream.
-- Arguments: its length.
append(KEYS[1], ARGV[1], 'kind', 'asked')
"""
)
