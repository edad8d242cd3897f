// The HTTP server on its own: what it takes, what it refuses before a body is read, and who may answer when.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "echo_server.h"
#include "heddle/base/log.h"
#include "heddle/serve/http_server.h"
#include "heddle/serve/load.h"
#include "heddle/serve/server_target.h"
#include "serve_support.h"

namespace heddle {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(HttpHead, IsReadStrictly) {
  const auto head = read_http_head(
      "POST /v2/models/a%20b/infer?x=1 HTTP/1.1\r\nHost: h\r\nContent-LENGTH:  12 \r\nX-A: 1\r\n\r\n");
  ASSERT_TRUE(head.ok()) << head.error().to_string();
  EXPECT_EQ(head->method, "POST");
  EXPECT_EQ(head->path, "/v2/models/a b/infer");
  EXPECT_EQ(head->query, "x=1");
  EXPECT_EQ(head->content_length, 12U);
  EXPECT_TRUE(head->keep_alive);
  EXPECT_EQ(*head->header("x-a"), "1");
  EXPECT_EQ(head->header("x-b"), nullptr);
  EXPECT_FALSE(read_http_head("GET / HTTP/1.1\r\nConnection: close\r\n\r\n")->keep_alive);
  EXPECT_FALSE(read_http_head("GET / HTTP/1.0\r\n\r\n")->keep_alive);
  EXPECT_FALSE(read_http_head("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n")->keep_alive);
  const char* kRefused[] = {
      "GET\r\n\r\n",
      "GET /\r\n\r\n",
      "GET / HTTP/2\r\n\r\n",
      "GET x HTTP/1.1\r\n\r\n",
      "GET /%zz HTTP/1.1\r\n\r\n",
      "GET /%0 HTTP/1.1\r\n\r\n",
      "GET /%00 HTTP/1.1\r\n\r\n",
      "GET /a b HTTP/1.1\r\n\r\n",
      "G(T / HTTP/1.1\r\n\r\n",
      "GET / HTTP/1.1\r\nno colon\r\n\r\n",
      "GET / HTTP/1.1\r\n: no name\r\n\r\n",
      "GET / HTTP/1.1\r\nbad name: x\r\n\r\n",
      "GET / HTTP/1.1\r\na: \x01\r\n\r\n",
      "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
      "POST / HTTP/1.1\r\nContent-Length: 1x\r\n\r\n",
      "POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n",
      "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
      "POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
  };
  for (const char* text : kRefused) {
    const auto refused = read_http_head(text);
    EXPECT_FALSE(refused.ok()) << text;
    if (!refused.ok()) {
      EXPECT_FALSE(refused.error().message().empty());
    }
  }
}

TEST(HttpHead, OfAnAnswerSaysWhereItsBodyEnds) {
  EXPECT_EQ(read_http_answer_head("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n")->content_length, 3U);
  const auto open = read_http_answer_head("HTTP/1.1 200 OK\r\n\r\n").value();
  EXPECT_FALSE(open.content_length || open.chunked || open.keep_alive);
  EXPECT_TRUE(read_http_answer_head("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")->chunked);
  EXPECT_EQ(read_http_answer_head("HTTP/1.1 204 No\r\n\r\n")->content_length, 0U);

  EXPECT_EQ(read_chunks("3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n"), "abc0123456789");
  EXPECT_EQ(read_chunks("0\r\nTrailer: x\r\n\r\n"), "");
  for (const char* text :
       {"", "3", "3\r\nab", "3\r\nabc", "3\r\nabc\r\n", "3\r\nabcd\r\n0\r\n\r\n", "x\r\n\r\n", "-1\r\na\r\n",
        "FFFFFFFFFFFFFFFF\r\na\r\n", "FFFFFFFFFFFFFFFFF\r\na\r\n", "\r\n"})
    EXPECT_EQ(read_chunks(text), std::nullopt) << text;
}

TEST(HttpHead, PathsHaveCodesForAllThatIsNotPlain) {
  EXPECT_EQ(percent_encode("a-b._~9"), "a-b._~9");
  EXPECT_EQ(percent_encode("50% a/b?\xC3\xA9"), "50%25%20a%2Fb%3F%C3%A9");
}

// Answers of any form, as a client sees them. The stub knows nothing of HTTP.
TEST(HttpClient, TakesAnswersWithoutALength) {
  const int listening = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(listening, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(listening, 8), 0);
  ASSERT_EQ(::getsockname(listening, reinterpret_cast<sockaddr*>(&address), &size), 0);
  LoadTarget target;
  target.port = ntohs(address.sin_port);
  const auto answer_with = [&](std::string_view answer) {
    std::thread server([&] {
      const int client = ::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
      char request[4096];
      (void)!::read(client, request, sizeof request);
      (void)!::write(client, answer.data(), answer.size());
      ::close(client);
    });
    auto got = ask_http(target, "GET", "/", "", 20);
    server.join();
    return got;
  };
  EXPECT_EQ(answer_with("HTTP/1.1 200 OK\r\n\r\nto the end")->body, "to the end");
  EXPECT_EQ(answer_with("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n")->body,
            "ab");
  EXPECT_EQ(answer_with("HTTP/1.1 204 No Content\r\n\r\n")->status, 204);
  EXPECT_FALSE(answer_with("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort").ok());
  EXPECT_FALSE(answer_with("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n").ok());
  EXPECT_FALSE(answer_with("").ok());
  ::close(listening);
}

TEST(HttpClient, AsksAServerAtAnAddressOfIpv6) {
  const auto server =
      HttpServer::start({.host = "::1"}, [](const HttpHead&, const HttpBody&, const HttpReply& reply) {
        reply.send(json_response({{"ok", true}}));
      });
  if (!server.ok()) GTEST_SKIP() << "this machine has no ::1: " << server.error().to_string();
  const auto target = server_target("http://[::1]:" + std::to_string((*server)->port()), "", "");
  ASSERT_TRUE(target.ok());
  const auto answer = ask_http(*target, "GET", "/x", "", 20);
  ASSERT_TRUE(answer.ok()) << answer.error().to_string();
  EXPECT_EQ(answer->status, 200) << answer->body;
  // A name that may lead to ::1 first, where another server is or none.
  const auto here = HttpServer::start({}, [](const HttpHead&, const HttpBody&, const HttpReply& reply) {
    reply.send(json_response({{"ok", true}}));
  });
  LoadTarget named;
  named.host = "localhost";
  named.port = (*here)->port();
  EXPECT_EQ(ask_http(named, "GET", "/x", "", 20)->status, 200);
}

TEST(HttpServer, KeepsAConnectionForManyRequests) {
  Echo echo;
  RawClient client(echo.port());
  EXPECT_EQ(client.ask("GET", "/a").body, "GET /a ");
  EXPECT_EQ(client.ask("POST", "/b", "text").body, "POST /b text");
  EXPECT_EQ(client.ask("POST", "/later", "x").body, "POST /later x");
  EXPECT_EQ(client.ask("HEAD", "/a").status, 200);
  EXPECT_EQ(client.ask("GET", "/a", "", "Connection: close\r\n").body, "GET /a ");
  EXPECT_TRUE(client.closed());
}

TEST(HttpServer, AnswersPipelinedRequestsInOrder) {
  Echo echo;
  RawClient client(echo.port());
  std::string all;
  for (int i = 0; i < 50; ++i)
    all += std::string("POST ") + (i % 3 == 0 ? "/later" : "/now") +
           " HTTP/1.1\r\nContent-Length: 2\r\n\r\n" + std::to_string(10 + i);
  client.send(all);
  for (int i = 0; i < 50; ++i) EXPECT_THAT(client.receive().body, HasSubstr(std::to_string(10 + i))) << i;
}

TEST(HttpServer, TakesRequestsInAnyPieces) {
  Echo echo;
  RawClient client(echo.port());
  const std::string request = "POST /p HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello";
  for (const char c : request) {
    client.send({&c, 1});
    if (c == '\n') std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_EQ(client.receive().body, "POST /p hello");
  const std::string large(3'000'000, 'x');
  EXPECT_EQ(client.ask("POST", "/large", large).body, "POST /large " + large);
}

TEST(HttpServer, RefusesBeforeItReadsTheBody) {
  HttpServerOptions options;
  options.max_body_bytes = 1000;
  options.max_bodies_bytes = 1500;
  Echo echo(options);
  const auto ask = [&echo](const std::string& headers) {
    RawClient client(echo.port());
    client.send("POST /x HTTP/1.1\r\n" + headers + "\r\n");
    const auto answer = client.receive();
    EXPECT_TRUE(parse_json(answer.body).ok()) << answer.body;
    client.finish_sending();
    EXPECT_TRUE(client.closed());
    return answer.status;
  };
  EXPECT_EQ(ask("Content-Length: 1001\r\n"), 413);
  EXPECT_EQ(ask("Content-Length: 99999999999999\r\n"), 413);
  EXPECT_EQ(ask("Transfer-Encoding: chunked\r\n"), 411);
  EXPECT_EQ(ask("Content-Encoding: gzip\r\nContent-Length: 9\r\n"), 415);
  EXPECT_EQ(ask("Content-Length: x\r\n"), 400);
  EXPECT_EQ(ask("X: " + std::string(20000, 'x') + "\r\n"), 431);
  EXPECT_EQ(echo.handled, 0);
  // Two bodies under way are more than may be in memory.
  RawClient first(echo.port());
  first.send("POST /x HTTP/1.1\r\nContent-Length: 1000\r\n\r\nbegin");
  ASSERT_TRUE(eventually([&echo] { return echo.server().counters().body_bytes == 1000; }));
  EXPECT_EQ(ask("Content-Length: 600\r\n"), 503);
  first.send(std::string(995, 'x'));
  EXPECT_EQ(first.receive().status, 200);
  EXPECT_TRUE(eventually([&echo] { return echo.server().counters().body_bytes == 0; }));
  // The client that goes away in the middle of a body leaves nothing behind.
  {
    RawClient gone(echo.port());
    gone.send("POST /x HTTP/1.1\r\nContent-Length: 1000\r\n\r\nbegin");
  }
  EXPECT_TRUE(eventually([&echo] { return echo.server().counters().open <= 1; }));
  EXPECT_EQ(echo.server().counters().body_bytes, 0U);
}

TEST(HttpServer, SendsContinueToThoseWhoWaitForIt) {
  Echo echo;
  RawClient client(echo.port());
  client.send("POST /x HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.receive().status, 100);
  client.send("ok");
  EXPECT_EQ(client.receive().body, "POST /x ok");
}

TEST(HttpServer, RefusesPagesOfOtherSites) {
  Echo echo;
  RawClient client(echo.port());
  EXPECT_EQ(client.ask("POST", "/x", "", "Origin: http://localhost\r\n").status, 200);
  EXPECT_EQ(client.ask("POST", "/x", "", "Origin: http://elsewhere\r\n").status, 403);
}

TEST(HttpServer, RefusesForeignNamesOfThisMachine) {
  HttpServerOptions options;
  options.host_names = {"box.example"};
  Echo echo(options);
  const auto status_of = [&echo](const std::string& host) {
    RawClient client(echo.port());
    client.send("GET /x HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
    return client.receive().status;
  };
  for (const char* host : {"localhost", "LOCALHOST:8000", "a.localhost", "127.0.0.1:1", "[::1]:8000",
                           "192.168.1.7", "box.example:80", "Box.Example"})
    EXPECT_EQ(status_of(host), 200) << host;
  for (const char* host : {"rebound.example", "localhost.example", "127.0.0.1.example:8000", "example"}) {
    EXPECT_EQ(status_of(host), 403) << host;
  }
}

TEST(HttpServer, WantsTheTokenWhereThereIsOne) {
  HttpServerOptions options;
  options.bearer_token = "secret-token";
  options.is_open = [](std::string_view path) { return path == "/open"; };
  Echo echo(options);
  RawClient client(echo.port());
  EXPECT_EQ(client.ask("GET", "/open").status, 200);
  EXPECT_EQ(client.ask("GET", "/x").status, 401);
  EXPECT_EQ(client.ask("GET", "/x", "", "Authorization: Bearer secret-tokeN\r\n").status, 401);
  EXPECT_EQ(client.ask("GET", "/x", "", "Authorization: Bearer secret-token1\r\n").status, 401);
  EXPECT_EQ(client.ask("GET", "/x", "", "Authorization: Bearer \r\n").status, 401);
  EXPECT_EQ(client.ask("GET", "/x", "", "Authorization: Bearer secret-token\r\n").status, 200);
}

TEST(HttpServer, LimitsRatesAndConnections) {
  HttpServerOptions options;
  options.rate = std::make_shared<RateLimit>(5);
  options.max_connections = 2;
  Echo echo(options);
  RawClient client(echo.port());
  int passed = 0, refused = 0;
  for (int i = 0; i < 20; ++i) {
    const auto status = client.ask("GET", "/x").status;
    passed += status == 200;
    refused += status == 429;
  }
  EXPECT_EQ(passed + refused, 20);
  EXPECT_GE(passed, 5);
  EXPECT_GE(refused, 1);
  RawClient second(echo.port());
  ASSERT_TRUE(eventually([&echo] { return echo.server().counters().open == 2; }));
  RawClient third(echo.port());
  EXPECT_EQ(third.receive().status, 503);
}

// Who does not read its refusal takes a connection's memory, too.
TEST(HttpServer, TellsOnlySomeThatItsConnectionsAreTaken) {
  HttpServerOptions options;
  options.max_connections = 1;
  Echo echo(options);
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 200; ++i) clients.push_back(std::make_unique<RawClient>(echo.port()));
  EXPECT_EQ(clients.back()->receive().status, 0);
  EXPECT_LE(echo.server().counters().open, 65U);
  EXPECT_EQ(clients.front()->ask("GET", "/x").status, 200);
}

// A large answer takes longer than a client may take for a request.
TEST(HttpServer, SendsAllToClientsThatReadOn) {
  HttpServerOptions options;
  options.read_timeout_s = .3;
  const std::string large(size_t{64} << 20, 'x');
  const auto server = HttpServer::start(
      options,
      [&large](const HttpHead&, const HttpBody&, const HttpReply& reply) { reply.send({.body = large}); });
  ASSERT_TRUE(server.ok());
  RawClient client((*server)->port());
  client.send("GET /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  size_t got = 0;
  for (int piece = 0; piece < 16; ++piece) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    got += client.receive_some(size_t{4} << 20);
    if (piece < 8) {
      EXPECT_GT((*server)->counters().body_bytes, 0U);  // of the answer
    }
  }
  while (const size_t more = client.receive_some(size_t{4} << 20)) got += more;
  EXPECT_GT(got, large.size());
  EXPECT_TRUE(eventually([&] { return (*server)->counters().body_bytes == 0; }));
}

// Who reads slowly gets all, unless its answer's memory is needed.
TEST(HttpServer, GivesUpSlowlyReadAnswersForNewRequests) {
  HttpServerOptions options;
  options.read_timeout_s = .3;
  options.max_bodies_bytes = size_t{65} << 20;
  const auto server =
      HttpServer::start(options, [](const HttpHead& head, const HttpBody& body, const HttpReply& reply) {
        reply.send(
            {.body = head.method == "GET" ? std::string(size_t{64} << 20, 'x') : std::string(body.text())});
      });
  ASSERT_TRUE(server.ok());
  std::atomic<bool> asked{false};
  size_t got = 0;
  std::thread slow([&] {
    RawClient client((*server)->port());
    client.send("GET /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    asked = true;
    while (const size_t more = client.receive_some(size_t{1} << 19)) {
      got += more;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  });
  ASSERT_TRUE(eventually([&] { return asked && (*server)->counters().body_bytes > 0; }));
  const std::string large(size_t{2} << 20, 'y');
  EXPECT_TRUE(
      eventually([&] { return RawClient((*server)->port()).ask("POST", "/x", large).status == 200; }));
  slow.join();
  EXPECT_LT(got, size_t{64} << 20);
}

TEST(HttpServer, EndsRequestsThatAreNotCompleteInTime) {
  HttpServerOptions options;
  options.read_timeout_s = .3;
  options.idle_timeout_s = .6;
  Echo echo(options);
  RawClient half(echo.port()), idle(echo.port());
  half.send("POST /x HTTP/1.1\r\nContent-Length: 10\r\n\r\nhal");
  EXPECT_EQ(half.receive().status, 408);
  EXPECT_TRUE(idle.closed());
  EXPECT_EQ(echo.server().counters().body_bytes, 0U);
}

TEST(HttpServer, AnswersEvenWhatItsHandlerForgets) {
  Echo echo;
  RawClient client(echo.port());
  EXPECT_EQ(client.ask("GET", "/never").status, 500);
}

TEST(HttpServer, StopsOnceWhatIsInWorkIsAnswered) {
  Echo echo;
  RawClient client(echo.port());
  client.send("GET /later HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(eventually([&echo] { return echo.handled == 1; }));
  echo.server().stop(5);
  EXPECT_EQ(client.receive().body, "GET /later ");
  EXPECT_FALSE(RawClient(echo.port()).connected());
}

TEST(HttpServer, SaysWhyItCannotListen) {
  Echo echo;
  HttpServerOptions options;
  options.port = echo.port();
  const auto taken = HttpServer::start(options, nullptr);
  ASSERT_FALSE(taken.ok());
  EXPECT_THAT(taken.error().to_string(), HasSubstr("127.0.0.1:" + std::to_string(echo.port())));
  options.port = 0;
  options.host = "256.1.1.1";
  EXPECT_EQ(HttpServer::start(options, nullptr).error().code(), Code::kInvalidInput);
}

TEST(HttpServer, LogsRequestsAtLevelDebugAndAnswersThatNobodyGave) {
  Echo echo;
  const auto log_of = [&echo](LogLevel least) {
    set_log(least, LogForm::kStamped);
    testing::internal::CaptureStderr();
    EXPECT_EQ(RawClient(echo.port()).ask("GET", "/there").status, 200);
    EXPECT_EQ(RawClient(echo.port()).ask("GET", "/never").status, 500);
    set_log(LogLevel::kError, LogForm::kStamped);
    return testing::internal::GetCapturedStderr();
  };
  const std::string given_up =
      "Z error a request was given up without an answer; this is a bug in the server\n";
  EXPECT_THAT(log_of(LogLevel::kDebug),
              AllOf(HasSubstr("Z debug HTTP GET /there: 200 after "), HasSubstr(given_up),
                    HasSubstr("Z debug HTTP GET /never: 500 after ")));
  EXPECT_THAT(log_of(LogLevel::kInfo), AllOf(HasSubstr(given_up), Not(HasSubstr("debug"))));
}

}  // namespace
}  // namespace heddle
