// Shares of a device: virtual devices of 1/v of its cores, as PPipe's public measurements define them. On an
// accelerator of libtorch they are 1/v of its multiprocessors.
#pragma once

#include "heddle/cluster/cluster.h"

namespace heddle {

// Into how many shares it can be divided: its cores, or what its backend's name for an accelerator allows; 1
// where it has neither.
int most_shares(const Device& device);

// The device with part `index` of `of` of it. With c cores: those from index c / of up to (index + 1) c / of
// in ascending order. An accelerator: as many of its parts ("cuda:0/1-2/4", docs/torch.md), and memory. Stays
// as it is where of > most_shares().
Device device_part(const Device& device, int index, int of);

}  // namespace heddle
