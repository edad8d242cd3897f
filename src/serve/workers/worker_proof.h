// The handshake by which a server and its workers, and workers among themselves, prove that they know the fleet's
// token without sending it. Each side answers the other's random nonce with an HMAC-SHA256 that is keyed by the
// token. The called side proves itself first, and its proof holds only at the address that was called, so a
// caller that reaches a stranger reveals nothing but a nonce.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "worker.pb.h"

namespace heddle {

// 32 random bytes.
std::string fresh_nonce();
// The HMAC of these fields. Never empty.
std::string proof_of(const std::string& token, const std::vector<std::string_view>& fields);
// The comparison takes the same time whatever is wrong.
bool is_proof(const std::string& given, const std::string& token,
              const std::vector<std::string_view>& fields);

// The call that a proof is for.
struct ProvenCall {
  std::string token;      // empty: no proof is asked for or given
  std::string_view what;  // kSessionCall or kFeatureCall
  std::string address;    // of the called side
};
inline constexpr std::string_view kSessionCall = "session", kFeatureCall = "feature";

// The caller's side: sends a hello, checks the answer, then proves itself.
class CallerProof {
 public:
  explicit CallerProof(ProvenCall call) : call_(std::move(call)) {}
  bool needed() const { return !call_.token.empty(); }
  worker::Hello hello();
  bool accepts(const worker::Challenge& challenge);
  std::string proof() const;  // after accepts()

 private:
  const ProvenCall call_;
  std::string own_, other_;
};

// The called side.
class CalledProof {
 public:
  explicit CalledProof(ProvenCall call) : call_(std::move(call)) {}
  // To be called once. Without a token the answer holds no proof.
  worker::Challenge answer(const worker::Hello& hello);
  // Without a token every caller is accepted.
  bool accepts(const std::string& proof) const;

 private:
  const ProvenCall call_;
  std::string own_, other_;
};

// Challenges that need no memory of those that were given: each is valid for half a minute to a minute.
class TimedChallenges {
 public:
  std::string now() const;
  bool is_valid(const std::string& challenge) const;

 private:
  std::string at(int64_t period) const;
  const std::string secret_ = fresh_nonce();
};

}  // namespace heddle
