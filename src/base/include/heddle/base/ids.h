// Typed indices: an OpId and a DeviceId cannot be confused. A default-constructed id is invalid (-1).
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace heddle {

template <class Tag>
struct Id {
  int32_t value = -1;

  constexpr Id() = default;
  constexpr explicit Id(int32_t v) : value(v) {}
  constexpr explicit Id(size_t v) : value(static_cast<int32_t>(v)) {}

  constexpr bool valid() const { return value >= 0; }
  // For indexing vectors; valid ids only.
  constexpr size_t index() const { return static_cast<size_t>(value); }
  constexpr auto operator<=>(const Id&) const = default;
};

using OpId = Id<struct OpTag>;            // an op of a graph
using TensorId = Id<struct TensorTag>;    // a tensor of a graph
using ParamId = Id<struct ParamTag>;      // a parameter (weight) of a graph
using HostId = Id<struct HostTag>;        // a host of a cluster
using DeviceId = Id<struct DeviceTag>;    // a device of a cluster
using NodeId = Id<struct NodeTag>;        // a vertex of a cluster's topology: host memory, device or switch
using LinkId = Id<struct LinkTag>;        // a link of a cluster
using BusId = Id<struct BusTag>;          // a bus that several links share
using SegmentId = Id<struct SegmentTag>;  // a segment of a plan
using StepId = Id<struct StepTag>;        // a step of a plan

}  // namespace heddle

template <class Tag>
struct std::hash<heddle::Id<Tag>> {
  size_t operator()(heddle::Id<Tag> id) const noexcept { return std::hash<int32_t>{}(id.value); }
};
