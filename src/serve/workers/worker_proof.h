// How a server and its workers, and workers among themselves, prove to each other that they know the fleet's
// token without showing it: each answers a random challenge of the other's with a hash of it that is keyed by
// the token (HMAC-SHA256). The one who was called proves itself first, and so that the proof holds only at
// the address that was called; whoever calls a stranger gives nothing but a random number away.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "worker.pb.h"

namespace heddle {

// 32 random bytes.
std::string fresh_nonce();
// Of somebody who knows the token; `fields` say of what. Never empty.
std::string proof_of(const std::string& token, const std::vector<std::string_view>& fields);
// In a time that does not tell how much of it is right.
bool is_proof(const std::string& given, const std::string& token,
              const std::vector<std::string_view>& fields);

// What is called, and where.
struct ProvenCall {
  std::string token;  // empty: nothing is asked for and nothing proven
  std::string_view what;
  std::string address;  // of the one who is called
};
inline constexpr std::string_view kSessionCall = "session", kFeatureCall = "feature";

// The one who calls: says hello, looks at the answer, then proves itself.
class CallerProof {
 public:
  explicit CallerProof(ProvenCall call) : call_(std::move(call)) {}
  bool needed() const { return !call_.token.empty(); }
  worker::Hello hello();
  bool believes(const worker::Challenge& challenge);
  std::string proof() const;  // once it believes

 private:
  const ProvenCall call_;
  std::string own_, other_;
};

// The one who is called.
class CalledProof {
 public:
  explicit CalledProof(ProvenCall call) : call_(std::move(call)) {}
  // Once; without a token an answer that proves nothing.
  worker::Challenge answer(const worker::Hello& hello);
  // Without a token everybody is believed.
  bool believes(const std::string& proof) const;

 private:
  const ProvenCall call_;
  std::string own_, other_;
};

// The challenges of somebody who keeps nothing of those that he has given: each holds for half a minute to a
// minute.
class TimedChallenges {
 public:
  std::string now() const;
  bool holds(const std::string& challenge) const;

 private:
  std::string at(int64_t period) const;
  const std::string secret_ = fresh_nonce();
};

}  // namespace heddle
