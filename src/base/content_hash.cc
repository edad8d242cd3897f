#include "heddle/base/content_hash.h"

#include <array>
#include <bit>
#include <cstring>

#include "heddle/base/hash.h"

namespace heddle {

static_assert(std::endian::native == std::endian::little);

uint64_t content_hash(std::string_view bytes) {
  // Each step is a bijection of its lane, so contents that differ in a single word never collide.
  constexpr size_t kLanes = 4;
  constexpr size_t kStep = kLanes * sizeof(uint64_t);
  std::array<uint64_t, kLanes> lanes = {1, 2, 3, 4};
  size_t at = 0;
  for (; at + kStep <= bytes.size(); at += kStep) {
    std::array<uint64_t, kLanes> words;
    std::memcpy(words.data(), bytes.data() + at, kStep);
    for (size_t i = 0; i < kLanes; ++i) {
      lanes[i] = (lanes[i] ^ words[i]) * 0x9e3779b97f4a7c15ULL;
      lanes[i] ^= lanes[i] >> 29;
    }
  }
  Hasher hasher;
  for (const uint64_t lane : lanes) hasher.number(lane);
  hasher.number(bytes.size());
  return hasher.text(bytes.substr(at)).value();
}

}  // namespace heddle
