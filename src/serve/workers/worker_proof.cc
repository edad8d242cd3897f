#include "worker_proof.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <array>
#include <cstdlib>

#include "heddle/fleet/data_plane_time.h"
#include "heddle/serve/http_message.h"
#include "heddle/serve/live_plane.h"

namespace heddle {
namespace {

constexpr size_t kNonceBytes = 32;
constexpr TimeNs kPeriod = 30 * kNsPerSecond;
constexpr std::string_view kCaller = "caller", kCalled = "called";

}  // namespace

std::string fresh_nonce() {
  std::array<unsigned char, kNonceBytes> bytes;
  // The system's generator practically never fails, and a guessable nonce would be worse than an abort.
  if (::RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) std::abort();
  return {bytes.begin(), bytes.end()};
}

std::string proof_of(const std::string& token, const std::vector<std::string_view>& fields) {
  // With their lengths, so that no two lists of fields give the same text.
  std::string text = "heddle";
  for (const auto field : fields) text += ":" + std::to_string(field.size()) + ":" + std::string(field);
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash;
  unsigned int size = 0;
  if (::HMAC(::EVP_sha256(), token.data(), static_cast<int>(token.size()),
             reinterpret_cast<const unsigned char*>(text.data()), text.size(), hash.data(), &size) == nullptr)
    std::abort();
  return {hash.begin(), hash.begin() + size};
}

bool is_proof(const std::string& given, const std::string& token,
              const std::vector<std::string_view>& fields) {
  return same_secret(given, proof_of(token, fields));
}

worker::Hello CallerProof::hello() {
  own_ = fresh_nonce();
  worker::Hello hello;
  hello.set_nonce(own_);
  return hello;
}

bool CallerProof::accepts(const worker::Challenge& challenge) {
  other_ = challenge.nonce();
  return own_.size() == kNonceBytes && other_.size() == kNonceBytes &&
         is_proof(challenge.proof(), call_.token, {call_.what, kCalled, own_, other_, call_.address});
}

std::string CallerProof::proof() const {
  return proof_of(call_.token, {call_.what, kCaller, own_, other_, call_.address});
}

worker::Challenge CalledProof::answer(const worker::Hello& hello) {
  worker::Challenge challenge;
  if (call_.token.empty()) return challenge;
  own_ = fresh_nonce();
  other_ = hello.nonce();
  challenge.set_nonce(own_);
  challenge.set_proof(proof_of(call_.token, {call_.what, kCalled, other_, own_, call_.address}));
  return challenge;
}

bool CalledProof::accepts(const std::string& proof) const {
  if (call_.token.empty()) return true;
  return !own_.empty() && is_proof(proof, call_.token, {call_.what, kCaller, other_, own_, call_.address});
}

std::string TimedChallenges::at(int64_t period) const { return proof_of(secret_, {std::to_string(period)}); }

std::string TimedChallenges::now() const { return at(live_now() / kPeriod); }

bool TimedChallenges::is_valid(const std::string& challenge) const {
  const int64_t period = live_now() / kPeriod;
  return same_secret(challenge, at(period)) || same_secret(challenge, at(period - 1));
}

}  // namespace heddle
