// Chooses the size and number of the pieces in which messages reach other ranks (docs/decisions/0023).
#pragma once

#include <cstddef>
#include <vector>

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

namespace heddle {

struct PeerPieces {
  size_t bytes = 0;   // of one piece
  int in_flight = 1;  // concurrent pieces of all messages to the rank; awaited pieces of one message
};

// [rank of `comm`], the same on both ends. Called by all ranks; returns an MPI error code.
int find_piece_sizes(MPI_Comm comm, std::vector<PeerPieces>& peers);

}  // namespace heddle
