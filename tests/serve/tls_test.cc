// Encrypted HTTP: the server's side, the client's side, and what both say when they do not trust each other.
#include "heddle/serve/tls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>

#include "certificate.h"
#include "echo_server.h"
#include "heddle/serve/load.h"
#include "http/socket_stream.h"
#include "serve_support.h"

namespace heddle {
namespace {

using testing::HasSubstr;

class Tls : public testing::Test {
 protected:
  void SetUp() override {
    if (!certificate_.made()) GTEST_SKIP() << "the openssl tool makes no certificate here";
    HttpServerOptions options;
    options.tls = certificate_.server();
    echo_ = std::make_unique<Echo>(options);
  }
  LoadTarget target(const std::string& trusted) const {
    LoadTarget t;
    t.port = echo_->port();
    t.tls = *TlsContext::client(trusted);
    return t;
  }

  Certificate certificate_;
  std::unique_ptr<Echo> echo_;
};

TEST_F(Tls, CarriesSmallAndLargeBodies) {
  const auto t = target(certificate_.file());
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{16384}, size_t{16385}, size_t{20} << 20}) {
    const std::string body(bytes, 'b');
    const auto answer = ask_http(t, "POST", "/x", body, 20);
    ASSERT_TRUE(answer.ok()) << answer.error().to_string();
    EXPECT_EQ(answer->status, 200);
    EXPECT_TRUE(answer->body == "POST /x " + body) << bytes;
  }
  const auto later = ask_http(t, "GET", "/later", "", 20);
  ASSERT_TRUE(later.ok());
  EXPECT_EQ(later->body, "GET /later ");
}

// Several requests in one record: what the stream has read already must not wait for the socket.
TEST_F(Tls, AnswersPipelinedRequestsInOrder) {
  SocketStream stream;
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(echo_->port()));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  stream.open(fd);
  ASSERT_TRUE(stream.connect_tls(**TlsContext::client(certificate_.file()), "127.0.0.1").ok());
  const auto wait = [&] {
    pollfd p = {fd, static_cast<short>(stream.wanted()), 0};
    ASSERT_GT(::poll(&p, 1, 20'000), 0);
  };
  std::string out, in;
  for (int i = 0; i < 9; ++i)
    out += "POST /" + std::string(i % 3 == 1 ? "later" : "x") + std::to_string(i) +
           " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n" + std::to_string(i);
  for (size_t sent = 0; sent < out.size();) {
    const auto n = stream.transmit(out, {}, sent);
    if (n > 0) {
      sent += static_cast<size_t>(n);
    } else {
      ASSERT_EQ(errno, EAGAIN) << stream.why();
      wait();
    }
  }
  char buffer[4096];
  while (in.find("POST /x8 8") == std::string::npos) {
    const auto n = stream.receive(buffer, sizeof buffer);
    if (n > 0) {
      in.append(buffer, static_cast<size_t>(n));
    } else {
      ASSERT_TRUE(n < 0 && errno == EAGAIN) << in;
      wait();
      if (HasFatalFailure()) return;
    }
  }
  size_t at = 0;
  for (int i = 0; i < 9; ++i) {
    at = in.find(std::to_string(i) + " " + std::to_string(i), at);
    ASSERT_NE(at, std::string::npos) << i;
  }
}

TEST_F(Tls, ClientsRefuseWhatTheyDoNotTrust) {
  const auto stranger = ask_http(target(""), "GET", "/x", "", 20);
  ASSERT_FALSE(stranger.ok());
  EXPECT_THAT(stranger.error().to_string(), HasSubstr("certificate is refused"));
  auto other_name = target(certificate_.file());
  other_name.host = "127.0.0.2";  // reaches the server's machine, but is not in the certificate
  EXPECT_FALSE(ask_http(other_name, "GET", "/x", "", 20).ok());
}

TEST_F(Tls, SurvivesClientsThatSpeakSomethingElse) {
  RawClient plain(echo_->port());
  plain.send("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(plain.receive().body, HasSubstr("expects https"));
  LoadTarget without = target(certificate_.file());
  without.tls = nullptr;
  const auto told = ask_http(without, "POST", "/x", std::string(3000, 'b'), 20);
  ASSERT_TRUE(told.ok()) << told.error().to_string();
  EXPECT_EQ(told->status, 400);
  EXPECT_THAT(told->body, HasSubstr("connect to https://"));
  RawClient noise(echo_->port());
  noise.send("\1\2\3\4\5\6\7");
  noise.finish_sending();
  EXPECT_EQ(noise.receive().status, 0);
  RawClient silent(echo_->port());
  EXPECT_EQ(ask_http(target(certificate_.file()), "GET", "/x", "", 20)->status, 200);
}

TEST(TlsFiles, AreCheckedBeforeAnythingListens) {
  const Certificate a, b;
  if (!a.made() || !b.made()) GTEST_SKIP() << "the openssl tool makes no certificate here";
  EXPECT_FALSE(read_tls_identity(a.file() + ".none", a.key()).ok());
  const auto mixed = TlsContext::server(*read_tls_identity(a.file(), b.key()));
  ASSERT_FALSE(mixed.ok());
  EXPECT_THAT(mixed.error().to_string(), HasSubstr("not the certificate's"));
  const auto swapped = TlsContext::server(*read_tls_identity(a.key(), a.file()));
  ASSERT_FALSE(swapped.ok());
  EXPECT_THAT(swapped.error().to_string(), HasSubstr("no certificate can be read"));
  const auto keyless = TlsContext::server(*read_tls_identity(a.file(), a.file()));
  ASSERT_FALSE(keyless.ok());
  EXPECT_THAT(keyless.error().to_string(), HasSubstr("no private key can be read"));
  EXPECT_FALSE(TlsContext::client(a.key()).ok());
  EXPECT_FALSE(TlsContext::client(a.file() + ".none").ok());
}

}  // namespace
}  // namespace heddle
