// One connection of the HTTP server, and what its answers need of the server's loop.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "heddle/base/stopwatch.h"
#include "heddle/serve/http_server.h"
#include "socket_stream.h"

namespace heddle {

using HttpClock = std::chrono::steady_clock;

// What threads that answer share with the loop; lives until the last of them is done.
struct HttpLoopState {
  FileHandle epoll, event;
  std::atomic<bool> stopping{false};
  std::atomic<size_t> in_work{0}, body_bytes{0};  // bodies of requests, and of answers that are not sent
  std::atomic<size_t> open{0};
  std::mutex mutex;
  std::vector<uint64_t> ready;  // connections that have input left over from before an answer

  void wake();
  // The connection has input that the loop need not wait for.
  void come_back(uint64_t id);
};

struct HttpConnection {
  enum class State {
    kHead,  // waits for a request's head, or reads it
    kBody,
    kWork,    // the answer is due: nothing is read
    kLinger,  // the last answer is sent: what comes is thrown away until the client closes, so that it sees
              // it
  };

  uint64_t id = 0;
  // The loop's alone, except while in work, when it leaves them alone, too.
  std::string in;
  HttpHead head;
  HttpBody body;
  size_t body_have = 0;
  HttpClock::time_point since;  // of the state, or of the request's first byte
  bool request_begun = false;
  size_t lingered = 0;

  std::mutex mutex;  // guards what follows
  SocketStream socket;
  State state = State::kHead;
  bool left_over = false;  // the begin of the next request was read, or waits in the stream
  bool close_after = false;
  std::string out_head, out_body;
  size_t out_sent = 0, out_read = 0;  // bytes; those that the client had when `since` was last set
  HttpClock::time_point answered;     // when the answer began

  bool out_pending() const { return out_sent < out_head.size() + out_body.size(); }
  // A client that reads at some speed gets all of its answer, however long that takes. With the mutex held.
  void renew();
  // Sends what it can; arms the loop for the rest, or for the next request. With the mutex held.
  void flush(HttpLoopState& loop);
  void arm(const HttpLoopState& loop, uint32_t events) const;
  // Forgets the answer. With the mutex held.
  void drop_answer(HttpLoopState& loop);
};

struct HttpReply::Impl {
  std::shared_ptr<HttpLoopState> loop;
  std::shared_ptr<HttpConnection> connection;
  std::atomic<bool> sent{false};
  bool keep_alive = true, head_only = false;
  size_t body_bytes = 0;  // of the budget
  std::string asked;      // method and path, for the log of requests; empty if there is none
  Stopwatch since_head;

  ~Impl();
  void send(HttpResponse response);
};

}  // namespace heddle
