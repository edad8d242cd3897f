// Rows of float32 kept as IEEE 754 half precision: half the bytes, with a relative error of at most 2^-11 for
// magnitudes of 6.1e-5 to 65504; larger ones become infinite, smaller ones lose further digits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle {

// `to` has count * 2 bytes. Rounds to the nearest, ties to even.
void floats_to_halves(const std::byte* from, size_t count, std::byte* to);
void halves_to_floats(const std::byte* from, size_t count, std::byte* to);

}  // namespace heddle
