-- The polls of wrk: requests that are prepared before the first is sent, and sent in random order, or in turn from an index on.
-- The arguments are a file with the DNS names of clusters, the rest of the path, more headers, "random" or "in-turn", and a
-- number, which is the seed or the index; and optionally the milliseconds between an answer and the next poll of a connection.
--
-- Every fleet gets as many different requests: with a hundred, all would fit the processor's caches, and with a hundred thousand
-- none, so that wrk itself would be slower with a larger fleet.
local MIN_REQUESTS = 100000
local polls, count, turn = {}, 0, 0
local draw

function init(args)
  local pause = tonumber(args[6])
  if pause then
    function delay() return pause end
  end
  local rest = "/" .. args[2] .. " HTTP/1.1\r\n" .. args[3]:gsub("|", "\r\n")
  repeat
    for name in io.lines(args[1]) do
      count = count + 1
      polls[count] = "GET /api/v2/flux/clusters/" .. name .. rest .. string.format("X-Poll: %06d\r\n\r\n", count)
    end
  until count >= MIN_REQUESTS
  if args[4] == "random" then
    math.randomseed(args[5])
    draw = function() return polls[math.random(count)] end
  else
    turn = tonumber(args[5])
    draw = function()
      turn = turn % count + 1
      return polls[turn]
    end
  end
end

function request()
  return draw()
end

function done(summary, latency)
  local errors = summary.errors
  print(string.format("polls %d %d %d %d %d %d %d %d %d %d",
    summary.requests, summary.duration, summary.bytes,
    errors.connect, errors.read, errors.write, errors.status, errors.timeout,
    latency:percentile(50), latency:percentile(99)))
end
