// How messages reach the other ranks, and in which pieces they go for that (docs/decisions/0023).
#pragma once

#include <cstddef>
#include <vector>

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

namespace heddle {

struct PeerPieces {
  size_t bytes = 0;   // of one piece
  int in_flight = 1;  // pieces of all messages to that rank; and pieces of one message that are awaited
};

// Per rank of `comm`, the same on both ends. Called by all ranks; an MPI error code.
int find_piece_sizes(MPI_Comm comm, std::vector<PeerPieces>& peers);

}  // namespace heddle
