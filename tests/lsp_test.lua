-- What a person does in Neovim with zephonc as its language server; what was seen goes to found.json beside the program.
local found = {}
local function fail(text)
  io.stderr:write(tostring(text) .. "\n")
  vim.cmd("cquit 1")
end

local function session()
  local client = vim.lsp.start_client({ name = "zephonc", cmd = { vim.env.ZEPHONC, "lsp" } })
  assert(client and vim.lsp.buf_attach_client(0, client), "no client")
  local function settle(what)
    assert(vim.wait(20000, what, 10), "waited in vain")
  end
  local function diagnostics()
    local out = {}
    for _, entry in ipairs(vim.diagnostic.get(0)) do
      table.insert(out, { code = entry.code, message = entry.message, line = entry.lnum })
    end
    return out
  end
  local function ask(method, line, text, shift)
    local params = { textDocument = vim.lsp.util.make_text_document_params(0) }
    if line then
      local at = vim.api.nvim_buf_get_lines(0, line, line + 1, false)[1]:find(text, 1, true)
      params.position = { line = line, character = at - 1 + (shift or 0) }
    end
    local answers, problem = vim.lsp.buf_request_sync(0, method, params, 20000)
    assert(answers, problem)
    local answer = answers[client]
    assert(answer and not answer.error, vim.inspect(answer))
    return answer.result
  end

  settle(function() return #vim.diagnostic.get(0) > 0 end)
  found.wrong = diagnostics()
  -- The mistake is mended by typing.
  vim.cmd([[%s/mist)/most)/]])
  settle(function() return #vim.diagnostic.get(0) == 0 end)
  found.right = diagnostics()
  found.hover = ask("textDocument/hover", 8, "clamp").contents.value
  found.definition = ask("textDocument/definition", 8, "half").range.start.line
  -- A step in the making.
  vim.api.nvim_buf_set_lines(0, 9, 9, false, { "  | ba" })
  found.completion = {}
  for _, item in ipairs(ask("textDocument/completion", 9, "ba", 2).items) do
    table.insert(found.completion, item.label)
  end
  vim.api.nvim_buf_set_lines(0, 9, 10, false, {})
  -- Laid out badly, and put right.
  vim.cmd([[%s/ | select z/|select    z/]])
  if vim.lsp.buf.format then
    vim.lsp.buf.format({ timeout_ms = 20000 })
  else
    vim.lsp.buf.formatting_sync(nil, 20000)  -- up to 0.7
  end
  found.formatted = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\n") .. "\n"
  vim.fn.writefile({ vim.json.encode(found) }, vim.fn.expand("%:p:h") .. "/found.json")
  vim.lsp.stop_client(client)
  settle(function() return vim.lsp.client_is_stopped(client) end)
end

local good, problem = pcall(session)
if not good then fail(problem) end
vim.cmd("qall!")
