#if HEDDLE_HAVE_MPI
#include "mpi_peers.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>

namespace heddle {
namespace {

// Within one machine, the two ranks first agree on a piece, which takes some 8 us on busy cores; then it is
// copied once (docs/measurements/mpi.md).
constexpr PeerPieces kByMemory = {size_t{4} << 20, 4};
// Over a network, a piece is as large as MPI sends without asking the receiver. Question and answer would
// queue behind all data in the sockets, and the link would be idle meanwhile.
constexpr size_t kUnasked = size_t{64} << 10, kHeaders = 512, kLeastPiece = size_t{4} << 10;
constexpr size_t kBytesInFlight = size_t{1} << 20;

// The value of a setting of the MPI library; empty if there is no such setting.
std::vector<char> setting(const char* name) {
  int index = 0, count = 0;
  MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
  std::vector<char> value;
  if (MPI_T_cvar_get_index(name, &index) != MPI_SUCCESS) return value;
  if (MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count) != MPI_SUCCESS) return value;
  // A text's count is its length; the extra bytes hold any number.
  value.assign(static_cast<size_t>(std::max(count, 0)) + 64, '\0');
  if (MPI_T_cvar_read(handle, value.data()) != MPI_SUCCESS) value.clear();
  MPI_T_cvar_handle_free(&handle);
  return value;
}

// Open MPI's transports can be selected, as by `mpirun --mca btl tcp,self`, or excluded, as by ^vader.
bool memory_is_allowed() {
  const auto value = setting("btl");
  const std::string_view names = value.empty() ? "" : std::string_view(value.data());
  if (names.empty()) return true;
  const bool named = names.find("vader") != names.npos || names.find("sm") != names.npos;
  return named != (names.front() == '^');
}

size_t unasked_bytes() {
  const auto value = setting("btl_tcp_eager_limit");
  size_t limit = kUnasked;
  if (value.size() >= sizeof limit) std::copy_n(value.data(), sizeof limit, reinterpret_cast<char*>(&limit));
  return std::clamp(limit, kLeastPiece + kHeaders, kByMemory.bytes) - kHeaders;
}

}  // namespace

int find_piece_sizes(MPI_Comm comm, std::vector<PeerPieces>& peers) {
  int size = 0, neighbours = 0, given = 0;
  unsigned long network[2] = {kUnasked - kHeaders, 1};  // all ranks take the minimum
  if (MPI_T_init_thread(MPI_THREAD_FUNNELED, &given) == MPI_SUCCESS) {
    network[0] = unasked_bytes();
    network[1] = memory_is_allowed() ? 1 : 0;
    MPI_T_finalize();
  }
  MPI_Comm_size(comm, &size);
  int code = MPI_Allreduce(MPI_IN_PLACE, network, 2, MPI_UNSIGNED_LONG, MPI_MIN, comm);
  if (code != MPI_SUCCESS) return code;
  const size_t bytes = network[0];
  peers.assign(static_cast<size_t>(size),
               {bytes, static_cast<int>(std::max<size_t>(kBytesInFlight / bytes, 2))});
  if (network[1] == 0) return MPI_SUCCESS;

  MPI_Comm near = MPI_COMM_NULL;
  code = MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &near);
  if (code != MPI_SUCCESS) return code;
  MPI_Comm_size(near, &neighbours);
  std::vector<int> theirs(static_cast<size_t>(neighbours)), ours(theirs.size());
  std::iota(theirs.begin(), theirs.end(), 0);
  MPI_Group near_group = MPI_GROUP_NULL, group = MPI_GROUP_NULL;
  MPI_Comm_group(near, &near_group);
  MPI_Comm_group(comm, &group);
  code = MPI_Group_translate_ranks(near_group, neighbours, theirs.data(), group, ours.data());
  for (const int rank : ours) {
    if (code == MPI_SUCCESS && rank >= 0) peers[static_cast<size_t>(rank)] = kByMemory;
  }
  MPI_Group_free(&near_group);
  MPI_Group_free(&group);
  MPI_Comm_free(&near);
  return code;
}

}  // namespace heddle
#endif
