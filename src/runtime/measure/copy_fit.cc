
#include "heddle/runtime/copy_profile.h"

namespace heddle {

CopyLine fit_copies(std::span<const CopyTime> times) {
  // Normal equations of sum(((l + c x) / t - 1)^2) over l (us) and c (us per byte).
  double s_ll = 0, s_lc = 0, s_cc = 0, s_l = 0, s_c = 0;
  for (const CopyTime& time : times) {
    const double x = static_cast<double>(time.bytes), w = 1 / (time.us * time.us);
    s_ll += w;
    s_lc += w * x;
    s_cc += w * x * x;
    s_l += w * time.us;
    s_c += w * time.us * x;
  }
  const double determinant = s_ll * s_cc - s_lc * s_lc;
  double latency = 0, per_byte = 0;
  // One size, or nearly equal sizes: no line can be fitted.
  constexpr double kSingular = 1e-9;
  if (determinant > kSingular * s_ll * s_cc) {
    latency = (s_l * s_cc - s_c * s_lc) / determinant;
    per_byte = (s_ll * s_c - s_lc * s_l) / determinant;
  }
  if (latency <= 0 || per_byte <= 0) {
    latency = 0;
    per_byte = s_c / s_cc;
  }
  return {latency, 1e6 / per_byte};
}

}  // namespace heddle
