#include "heddle/graph/region_faults.h"

namespace heddle {
namespace {

thread_local RegionFaults* listening = nullptr;

}  // namespace

RegionFaults::RegionFaults() { listening = this; }
RegionFaults::~RegionFaults() { listening = nullptr; }

bool RegionFaults::take(const Error& error) {
  if (listening == nullptr) return false;
  if (listening->status_.ok()) listening->status_ = error;
  return true;
}

}  // namespace heddle
