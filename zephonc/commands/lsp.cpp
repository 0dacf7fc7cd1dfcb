// zephonc lsp: the Language Server Protocol over standard input and output.
//
// One thread reads and answers, another asks the front end. Hover and completion answer from what was last known, with
// places moved to where they are now, so that they never wait for a long program to be checked.

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "frontend/print.h"
#include "zephonc/commands.h"
#include "zephonc/console.h"
#include "zephonc/files.h"
#include "zephonc/lsp/answers.h"
#include "zephonc/rewrite.h"

namespace zephon {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

constexpr size_t kMostMessage = 64u << 20;  // bytes of a message, and of a header
constexpr size_t kMostHeader = 16u << 10;
constexpr auto kPatience = 5ms;      // how long hover and completion wait for the newest text to be checked
constexpr auto kLongPatience = 10s;  // where an answer by older text would not do

/// Errors of JSON-RPC and of the protocol.
enum ErrorCode {
  kParseError = -32700,
  kInvalidRequest = -32600,
  kMethodNotFound = -32601,
  kInvalidParams = -32602,
  kServerNotInitialized = -32002,
  kRequestFailed = -32803,
};

struct Refusal {
  ErrorCode code;
  std::string message;
};

/// Messages between `Content-Length` headers.
class Channel {
 public:
  enum class Got { Message, Bad, End };

  Got read(std::string& body, std::string& error) {
    std::optional<size_t> length;
    size_t header = 0;
    for (std::string line;;) {
      if (!read_line(line)) return Got::End;
      header += line.size() + 2;
      if (line.empty()) {
        if (header == 2) continue;  // an empty line between messages
        break;
      }
      if (header > kMostHeader) {
        error = "the header is too long";
        return Got::Bad;
      }
      const size_t colon = line.find(':');
      if (colon == std::string::npos || !same_word(line.substr(0, colon), "content-length")) continue;
      const size_t digits = line.find_first_not_of(' ', colon + 1);
      size_t value = 0;
      if (digits == std::string::npos) continue;
      const auto [rest, bad] = std::from_chars(line.data() + digits, line.data() + line.size(), value);
      if (bad == std::errc() && rest == line.data() + line.size()) length = value;
    }
    if (!length) {
      error = "a message needs `Content-Length: N`";
      return Got::Bad;
    }
    if (*length > kMostMessage) {
      for (size_t left = *length; left > 0; --left) {
        if (next() < 0) return Got::End;
      }
      error = fmt::format("a message of {} bytes is too long: at most {}", *length, kMostMessage);
      return Got::Bad;
    }
    body.clear();
    while (body.size() < *length) {
      if (at_ == end_ && !fill()) return Got::End;
      const size_t part = std::min(end_ - at_, *length - body.size());
      body.append(buffer_ + at_, part);
      at_ += part;
    }
    return Got::Message;
  }

  void write(const json& message) {
    const std::string text = message.dump(-1, ' ', false, json::error_handler_t::replace);
    std::lock_guard lock(writing_);
    print(fmt::format("Content-Length: {}\r\n\r\n{}", text.size(), text));
  }

 private:
  static bool same_word(const std::string& a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](char x, char y) { return std::tolower(static_cast<unsigned char>(x)) == y; });
  }
  bool fill() {
    ssize_t n = 0;
    do n = ::read(STDIN_FILENO, buffer_, sizeof(buffer_));
    while (n < 0 && errno == EINTR);
    at_ = 0;
    end_ = n > 0 ? static_cast<size_t>(n) : 0;
    return n > 0;
  }
  int next() {
    if (at_ == end_ && !fill()) return -1;
    return static_cast<unsigned char>(buffer_[at_++]);
  }
  /// Without its end; at most a little more than a header may have.
  bool read_line(std::string& line) {
    line.clear();
    for (int c; (c = next()) >= 0;) {
      if (c == '\n') {
        if (!line.empty() && line.back() == '\r') line.pop_back();
        return true;
      }
      if (line.size() <= kMostHeader) line += static_cast<char>(c);
    }
    return false;
  }

  std::mutex writing_;
  char buffer_[65536];
  size_t at_ = 0, end_ = 0;
};

struct Document {
  std::string name;  // of the program, whose ending says the form
  json version;
  uint64_t edition = 0;  // of the text, counted here
  std::shared_ptr<const lsp::Text> text;
  std::shared_ptr<const lsp::Analysis> latest;  // of some text, possibly of an older one
  uint64_t latest_edition = 0;
  std::shared_ptr<const lsp::Analysis> known;  // the latest that parses
};

class Server {
 public:
  int run() {
    std::thread worker([this] { work(); });
    std::string body, error;
    for (bool on = true; on && !exit_;) {
      switch (channel_.read(body, error)) {
        case Channel::Got::End:
          on = false;
          break;
        case Channel::Got::Bad:
          refuse(nullptr, {kParseError, error});
          break;
        case Channel::Got::Message:
          take(body);
          break;
      }
    }
    {
      std::lock_guard lock(mutex_);
      quit_ = true;
    }
    changed_.notify_all();
    worker.join();
    return down_ ? kExitOk : kExitProgram;
  }

 private:
  // ---- messages
  void refuse(const json& id, const Refusal& refusal) {
    channel_.write({{"jsonrpc", "2.0"}, {"id", id}, {"error", {{"code", refusal.code}, {"message", refusal.message}}}});
  }

  void take(const std::string& body) {
    json message = json::parse(body, nullptr, false);
    if (message.is_discarded()) return refuse(nullptr, {kParseError, "the message is not JSON"});
    if (!message.is_object()) return refuse(nullptr, {kInvalidRequest, "a message is an object"});
    const bool request = message.contains("id");
    json id = request ? message["id"] : json();
    if (request && !id.is_string() && !id.is_number()) return refuse(nullptr, {kInvalidRequest, "`id` is no name"});
    auto method = message.find("method");
    if (method == message.end()) {
      if (message.contains("result") || message.contains("error")) return;  // an answer: nothing was asked
      return refuse(id, {kInvalidRequest, "a message names a `method`"});
    }
    if (!method->is_string()) return refuse(id, {kInvalidRequest, "`method` is a text"});
    const json params = message.contains("params") ? message["params"] : json::object();
    try {
      if (request)
        channel_.write({{"jsonrpc", "2.0"}, {"id", id}, {"result", answer(method->get<std::string>(), params)}});
      else
        notice(method->get<std::string>(), params);
    } catch (const Refusal& refusal) {
      if (request) refuse(id, refusal);
    } catch (const json::exception&) {
      if (request) refuse(id, {kInvalidParams, "`params` are not those of `" + method->get<std::string>() + "`"});
    }
  }

  json answer(const std::string& method, const json& params) {
    if (method == "initialize") {
      if (up_) throw Refusal{kInvalidRequest, "`initialize` comes once"};
      up_ = true;
      return capabilities();
    }
    if (!up_) throw Refusal{kServerNotInitialized, "`initialize` comes first"};
    if (down_) throw Refusal{kInvalidRequest, "after `shutdown` only `exit` may come"};
    if (method == "shutdown") {
      down_ = true;
      return nullptr;
    }
    auto uri_of = [this](const std::string& path) { return uri_of_name(path); };
    if (method == "textDocument/hover") return at_place(params, kPatience, hover);
    if (method == "textDocument/completion") return at_place(params, kPatience, completion);
    if (method == "textDocument/definition") {
      return at_place(params, kLongPatience, [&](const Document& document, const lsp::Analysis& known, size_t at) {
        return lsp::definition(known, *document.text, at, uri_of);
      });
    }
    if (method == "textDocument/documentSymbol") {
      const Document document = settled(uri_in(params), kLongPatience);
      return document.known ? lsp::symbols(*document.known) : json::array();
    }
    if (method == "textDocument/formatting") return format(uri_in(params));
    throw Refusal{kMethodNotFound, "no method `" + method + "`"};
  }

  static json capabilities() {
    return {{"capabilities",
             {{"positionEncoding", "utf-16"},
              {"textDocumentSync", {{"openClose", true}, {"change", 2}, {"save", json::object()}}},
              {"hoverProvider", true},
              {"definitionProvider", true},
              {"documentSymbolProvider", true},
              {"documentFormattingProvider", true},
              {"completionProvider", {{"triggerCharacters", {".", "|", "(", ","}}}}}},
            {"serverInfo", {{"name", "zephonc"}, {"version", ZEPHON_VERSION}}}};
  }

  void notice(const std::string& method, const json& params) {
    if (method == "exit") {
      exit_ = true;
      return;
    }
    if (!up_ || down_) return;
    if (method == "textDocument/didOpen") {
      const json& item = params.at("textDocument");
      const std::string uri = item.at("uri").get<std::string>();
      std::string name = lsp::path_of_uri(uri);
      // An unnamed buffer has the form of its language.
      const std::string language = item.value("languageId", "");
      if (name == uri && language == "yaml" && form_of(name) != Form::Yaml) name += ".yaml";
      std::string text = item.at("text").get<std::string>();
      std::lock_guard lock(mutex_);
      Document& document = documents_[uri];
      document.name = std::move(name);
      set_text(uri, document, std::move(text), item.value("version", json()));
    } else if (method == "textDocument/didChange") {
      const json& item = params.at("textDocument");
      const std::string uri = item.at("uri").get<std::string>();
      std::lock_guard lock(mutex_);
      auto found = documents_.find(uri);
      if (found == documents_.end()) return;
      std::shared_ptr<const lsp::Text> text = found->second.text;
      for (const json& change : params.at("contentChanges")) text = changed(*text, change);
      set_text(uri, found->second, text->bytes(), item.value("version", json()));
    } else if (method == "textDocument/didClose") {
      const std::string uri = uri_in(params);
      std::string name;
      {
        std::lock_guard lock(mutex_);
        auto found = documents_.find(uri);
        if (found == documents_.end()) return;
        name = found->second.name;
        documents_.erase(found);
        touch_importers(name);
      }
      changed_.notify_all();
      publish(uri, nullptr, json::array());
    } else if (method == "textDocument/didSave" || method == "workspace/didChangeWatchedFiles") {
      // Files on disk may be others now.
      std::lock_guard lock(mutex_);
      for (const auto& [uri, document] : documents_) touch(uri);
      changed_.notify_all();
    }
  }

  static std::shared_ptr<const lsp::Text> changed(const lsp::Text& text, const json& change) {
    std::string part = change.at("text").get<std::string>();
    auto range = change.find("range");
    if (range == change.end()) return std::make_shared<const lsp::Text>(std::move(part));
    const size_t size = text.bytes().size();
    const size_t begin = text.offset(place_in(range->at("start"))).value_or(size);
    const size_t end = std::max(begin, text.offset(place_in(range->at("end"))).value_or(size));
    std::string all = text.bytes();
    all.replace(begin, end - begin, part);
    return std::make_shared<const lsp::Text>(std::move(all));
  }

  static lsp::Place place_in(const json& position) {
    const json &line = position.at("line"), &column = position.at("character");
    if (!line.is_number_unsigned() || !column.is_number_unsigned() || line > UINT32_MAX || column > UINT32_MAX)
      throw Refusal{kInvalidParams, "a position is a `line` and a `character`, whole numbers from 0"};
    return {line.get<uint32_t>(), column.get<uint32_t>()};
  }

  static std::string uri_in(const json& params) { return params.at("textDocument").at("uri").get<std::string>(); }

  // ---- answers
  /// The document once the front end has seen its text, or when the time is over.
  template <class Duration>
  Document settled(const std::string& uri, Duration patience) {
    std::unique_lock lock(mutex_);
    if (!documents_.contains(uri)) throw Refusal{kInvalidParams, "`" + uri + "` is not open"};
    // Only this thread opens and closes documents.
    Document& document = documents_.at(uri);
    settled_.wait_for(lock, patience, [&] { return document.latest_edition == document.edition; });
    if (!document.latest) settled_.wait_for(lock, kLongPatience, [&] { return document.latest != nullptr; });
    return document;
  }

  template <class Duration, class Answer>
  json at_place(const json& params, Duration patience, Answer&& answer) {
    const lsp::Place place = place_in(params.at("position"));
    const Document document = settled(uri_in(params), patience);
    const std::optional<size_t> at = document.text->offset(place);
    if (!at) throw Refusal{kInvalidParams, fmt::format("the text has no line {}", place.line)};
    const std::shared_ptr<const lsp::Analysis> known = document.known ? document.known : document.latest;
    if (!known) throw Refusal{kRequestFailed, "the text has not been checked yet"};
    return answer(document, *known, *at);
  }

  static json completion(const Document& document, const lsp::Analysis& known, size_t at) {
    return lsp::completion(known, *document.text, at);
  }

  static json hover(const Document& document, const lsp::Analysis& known, size_t at) {
    json out = lsp::hover(known, *document.text, at);
    const std::string more = lsp::explanations(*document.latest, *document.text, at);
    if (more.empty()) return out;
    if (out.is_null()) return {{"contents", {{"kind", "markdown"}, {"value", more}}}};
    std::string& text = out["contents"]["value"].get_ref<std::string&>();
    text += "\n---\n\n" + more;
    return out;
  }

  json format(const std::string& uri) {
    Document document;
    {
      std::lock_guard lock(mutex_);
      if (!documents_.contains(uri)) throw Refusal{kInvalidParams, "`" + uri + "` is not open"};
      document = documents_.at(uri);
    }
    int code = kExitOk;
    const std::string& old = document.text->bytes();
    std::optional<std::string> text = rewrite(document.name, old, form_of(document.name), code);
    if (!text) throw Refusal{kRequestFailed, "the text does not parse: see its diagnostics"};
    if (*text == old) return json::array();
    return {{{"range", lsp::range_of(*document.text, 0, old.size())}, {"newText", *text}}};
  }

  /// What an editor calls the file: as it opened it, where it did.
  std::string uri_of_name(const std::string& name) {
    std::lock_guard lock(mutex_);
    for (const auto& [uri, document] : documents_) {
      if (document.name == name) return uri;
    }
    return lsp::uri_of_path(name);
  }

  void publish(const std::string& uri, const json& version, json diagnostics) {
    json params{{"uri", uri}, {"diagnostics", std::move(diagnostics)}};
    if (version.is_number()) params["version"] = version;
    channel_.write({{"jsonrpc", "2.0"}, {"method", "textDocument/publishDiagnostics"}, {"params", std::move(params)}});
  }

  // ---- the thread that asks the front end; mutex_ is held by those who call these
  void touch(const std::string& uri) {
    if (std::find(waiting_.begin(), waiting_.end(), uri) == waiting_.end()) waiting_.push_back(uri);
  }
  void touch_importers(const std::string& name) {
    for (const auto& [uri, document] : documents_) {
      if (document.latest && document.latest->imported.contains(name)) touch(uri);
    }
  }
  void set_text(const std::string& uri, Document& document, std::string text, json version) {
    document.text = std::make_shared<const lsp::Text>(std::move(text));
    document.version = std::move(version);
    document.edition = ++editions_;
    touch(uri);
    touch_importers(document.name);
    changed_.notify_all();
  }

  void work() {
    while (true) {
      std::string uri;
      Document document;
      std::map<std::string, std::shared_ptr<const lsp::Text>> open;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return quit_ || !waiting_.empty(); });
        if (quit_) return;
        uri = std::move(waiting_.front());
        waiting_.pop_front();
        auto found = documents_.find(uri);
        if (found == documents_.end()) continue;
        document = found->second;
        for (const auto& [other, entry] : documents_) open[entry.name] = entry.text;
      }
      // What an editor shows is what counts, saved or not.
      auto read = [&](const std::string& path, std::string& error) -> std::optional<std::string> {
        if (auto buffer = open.find(path); buffer != open.end()) return buffer->second->bytes();
        Failure failure;
        std::optional<std::string> text = read_whole_file(path, failure);
        if (!text) error = failure.message;
        return text;
      };
      auto analysis = lsp::analyse(document.name, document.text, read);
      json found = lsp::diagnostics_of(*analysis, [this](const std::string& path) { return uri_of_name(path); });
      std::lock_guard lock(mutex_);
      auto now = documents_.find(uri);
      if (now == documents_.end()) continue;
      now->second.latest = analysis;
      now->second.latest_edition = document.edition;
      if (analysis->tree || !now->second.known) now->second.known = analysis;
      // A text that is gone has nothing to say any more: the next round is for the one that stands there.
      if (now->second.edition == document.edition) publish(uri, document.version, std::move(found));
      settled_.notify_all();
    }
  }

  Channel channel_;
  bool up_ = false, down_ = false, exit_ = false;  // of the first thread alone
  std::mutex mutex_;                               // of what follows
  std::condition_variable changed_, settled_;
  std::map<std::string, Document> documents_;  // by URI
  std::deque<std::string> waiting_;            // to be looked at
  uint64_t editions_ = 0;
  bool quit_ = false;
};

}  // namespace

int command_lsp(const Options&) { return std::make_unique<Server>()->run(); }

}  // namespace zephon
