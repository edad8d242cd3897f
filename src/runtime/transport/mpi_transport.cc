// A transport between the ranks that mpirun started (docs/decisions/0012-one-thread-talks-mpi.md).
#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <numeric>
#include <string_view>
#include <utility>

#include "heddle/base/quantiles.h"
#include "heddle/runtime/transport.h"
#include "threads/mailbox.h"

#if HEDDLE_HAVE_MPI
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif
#endif

namespace heddle {

#if HEDDLE_HAVE_MPI
namespace {

constexpr int kAlarmBytes = 2048, kRawTag = 1;
constexpr int64_t kSliceNs = 100'000;  // after this time, handling of further pieces yields to other work

// The pieces in which messages reach another rank (docs/decisions/0023).
struct PeerPieces {
  size_t bytes = 0;   // of one piece
  int in_flight = 1;  // concurrent pieces of all messages to the rank; awaited pieces of one message
};

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

// [rank of `comm`], the same on both ends. Called by all ranks; returns an MPI error code.
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

class MpiTransport final : public Transport {
 public:
  Status open() {
    int ready = 0;
    MPI_Initialized(&ready);
    if (ready != 0) return internal_error("MPI is already initialised");
    int given = MPI_THREAD_SINGLE;
    HEDDLE_RETURN_IF_ERROR(
        mpi_status(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &given), "MPI_Init_thread"));
    open_ = true;
    if (given < MPI_THREAD_FUNNELED)
      return unsupported(
          "this MPI library cannot be used by a program with threads (MPI_THREAD_FUNNELED is needed)");
    // Messages of the plan and alarms have separate communicators, so that their tags cannot collide.
    for (MPI_Comm* comm : {&plan_, &alarms_, &raw_}) {
      HEDDLE_RETURN_IF_ERROR(mpi_status(MPI_Comm_dup(MPI_COMM_WORLD, comm), "MPI_Comm_dup"));
      MPI_Comm_set_errhandler(*comm, MPI_ERRORS_RETURN);
    }
    MPI_Comm_rank(plan_, &rank_);
    MPI_Comm_size(plan_, &size_);
    char name[MPI_MAX_PROCESSOR_NAME] = "";
    int length = 0;
    MPI_Get_processor_name(name, &length);
    host_.assign(name, static_cast<size_t>(length));
    int* bound = nullptr;
    int found = 0;
    MPI_Comm_get_attr(plan_, MPI_TAG_UB, static_cast<void*>(&bound), &found);
    if (found != 0) max_tag_ = *bound;
    queues_.resize(static_cast<size_t>(size_));
    HEDDLE_RETURN_IF_ERROR(mpi_status(find_piece_sizes(plan_, peers_), "asking how ranks are reached"));
    return mpi_status(
        MPI_Irecv(alarm_text_.data(), kAlarmBytes, MPI_CHAR, MPI_ANY_SOURCE, 0, alarms_, &alarm_request_),
        "waiting for alarms");
  }

  ~MpiTransport() override {
    // A process that ends without MPI_Finalize() makes mpirun end the others.
    if (!open_ || abandoned_) return;
    // After a failure, messages in flight never arrive, and MPI_Finalize() would wait for them.
    if (broken_) MPI_Abort(MPI_COMM_WORLD, 1);
    if (alarm_request_ != MPI_REQUEST_NULL) {
      MPI_Cancel(&alarm_request_);
      MPI_Request_free(&alarm_request_);
    }
    MPI_Finalize();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string host_name() const override { return host_; }
  int max_tag() const override { return max_tag_; }
  // Only Open MPI answers this query, and only a build with CUDA says yes.
  bool reaches_memory_of([[maybe_unused]] std::string_view family) const override {
#if defined(MPIX_CUDA_AWARE_SUPPORT)
    if (family == "cuda") return MPIX_Query_cuda_support() == 1;
#endif
    return false;
  }

  Status send(int to, int tag, std::span<const std::byte> data, int64_t token) override {
    Queue& queue = queues_[static_cast<size_t>(to)];
    const Outgoing message{data, tag, add_message(to, token, data.size())};
    const bool overtakes = std::none_of(queue.waiting.begin(), queue.waiting.end(),
                                        [&](const Outgoing& o) { return o.tag == tag; });
    // A message of one piece does not wait behind a large tensor.
    if (data.size() <= piece_bytes(to) && overtakes) return start_piece(to, tag, data, message.message);
    queue.waiting.push_back(message);
    return start_pieces(to);
  }

  Status receive(int from, int tag, std::span<std::byte> data, int64_t token) override {
    Awaited message{data, from, tag, add_message(from, token, data.size()), 0};
    message.pieces = messages_[static_cast<size_t>(message.message)].left;
    const bool first = is_first(message, awaited_.size());
    if (first) HEDDLE_RETURN_IF_ERROR(await_pieces(message));
    if (message.pieces > 0) awaited_.push_back(message);
    return {};
  }

  Status progress(std::vector<int64_t>& done) override {
    HEDDLE_RETURN_IF_ERROR(look_for_alarm());
    const size_t before = done.size();
    const int64_t until = now_ns() + kSliceNs;
    bool moved = true;
    // MPI takes about one piece from a network per call.
    while (moved && done.size() == before && !requests_.empty()) {
      HEDDLE_RETURN_IF_ERROR(take_finished(done, moved));
      if (now_ns() >= until) break;
    }
    return {};
  }

  void raise_alarm(const std::string& reason) override {
    // Alarms are short enough to be sent at once, even if the receiver is not looking.
    if (alarms_sent_ > 0) return;
    std::strncpy(alarm_out_.data(), reason.c_str(), kAlarmBytes - 1);
    for (int to = 0; to < size_; ++to) {
      if (to == rank_) continue;
      MPI_Request request = MPI_REQUEST_NULL;
      if (MPI_Isend(alarm_out_.data(), kAlarmBytes, MPI_CHAR, to, 0, alarms_, &request) != MPI_SUCCESS)
        continue;
      ++alarms_sent_;
      MPI_Request_free(&request);
    }
  }
  const std::optional<std::string>& alarm() const override { return alarm_; }
  void abandon() override { abandoned_ = true; }

  Result<double> raw_message_us(int a, int b, int64_t bytes, int repeats) override {
    if (rank_ != a && rank_ != b) return 0.0;
    std::vector<std::byte> memory(static_cast<size_t>(bytes));
    const int peer = rank_ == a ? b : a, count = static_cast<int>(bytes);
    const auto give = [&] { return MPI_Send(memory.data(), count, MPI_BYTE, peer, kRawTag, raw_); };
    const auto take = [&] {
      return MPI_Recv(memory.data(), count, MPI_BYTE, peer, kRawTag, raw_, MPI_STATUS_IGNORE);
    };
    std::vector<double> us;
    for (int i = -2; i < repeats; ++i) {
      const int64_t begin = now_ns();
      HEDDLE_RETURN_IF_ERROR(mpi_status(rank_ == a ? give() : take(), "a round trip"));
      HEDDLE_RETURN_IF_ERROR(mpi_status(rank_ == a ? take() : give(), "a round trip"));
      if (i >= 0) us.push_back(static_cast<double>(now_ns() - begin) / 2000);
    }
    return median_us(us);
  }

 private:
  struct Message {
    int64_t token;
    size_t left;  // pieces that have not arrived or been sent
    int posted;   // of these, the ones that MPI handles
  };
  struct Awaited {
    std::span<std::byte> data;  // the part that MPI does not handle yet
    int from, tag;
    int32_t message;
    size_t pieces;  // pieces in `data`
  };
  struct Outgoing {
    std::span<const std::byte> data;  // the unsent part
    int tag;
    int32_t message;
  };
  struct Queue {
    std::deque<Outgoing> waiting;
    int in_flight = 0;
  };
  struct Part {
    int32_t message;
    int queue;  // receiving rank; -1: a received part
  };

  Status mpi_status(int code, const char* what) {
    if (code == MPI_SUCCESS) return {};
    broken_ = true;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    return io_error(std::string(what) + ": " + std::string(text, static_cast<size_t>(length)));
  }

  size_t piece_bytes(int peer) const { return peers_[static_cast<size_t>(peer)].bytes; }

  int32_t add_message(int peer, int64_t token, size_t bytes) {
    const size_t piece = piece_bytes(peer);
    const Message message{token, std::max<size_t>(1, (bytes + piece - 1) / piece), 0};
    if (free_.empty()) {
      messages_.push_back(message);
      return static_cast<int32_t>(messages_.size() - 1);
    }
    const int32_t index = free_.back();
    free_.pop_back();
    messages_[static_cast<size_t>(index)] = message;
    return index;
  }

  void add_request(MPI_Request request, int32_t message, int queue) {
    requests_.push_back(request);
    parts_.push_back({message, queue});
    ++messages_[static_cast<size_t>(message)].posted;
  }

  Status start_piece(int to, int tag, std::span<const std::byte> data, int32_t message) {
    MPI_Request request = MPI_REQUEST_NULL;
    HEDDLE_RETURN_IF_ERROR(
        mpi_status(MPI_Isend(data.data(), static_cast<int>(data.size()), MPI_BYTE, to, tag, plan_, &request),
                   "MPI_Isend"));
    add_request(request, message, to);
    ++queues_[static_cast<size_t>(to)].in_flight;
    return {};
  }

  // Starts few pieces at a time, so that arrivals and due tasks need not wait until all are in the sockets.
  Status start_pieces(int to) {
    Queue& queue = queues_[static_cast<size_t>(to)];
    const int64_t until = now_ns() + kSliceNs;
    while (!queue.waiting.empty() && queue.in_flight < peers_[static_cast<size_t>(to)].in_flight) {
      Outgoing& first = queue.waiting.front();
      const size_t bytes = std::min(first.data.size(), piece_bytes(to));
      HEDDLE_RETURN_IF_ERROR(start_piece(to, first.tag, first.data.first(bytes), first.message));
      first.data = first.data.subspan(bytes);
      if (first.data.empty()) queue.waiting.pop_front();
      if (now_ns() >= until) break;
    }
    return {};
  }

  // Of two messages with the same tag, the pieces of the first are received first.
  bool is_first(const Awaited& message, size_t before) const {
    return std::none_of(awaited_.begin(), awaited_.begin() + static_cast<std::ptrdiff_t>(before),
                        [&](const Awaited& o) { return o.from == message.from && o.tag == message.tag; });
  }

  Status await_pieces(Awaited& m) {
    const auto index = static_cast<size_t>(m.message);
    while (m.pieces > 0 && messages_[index].posted < peers_[static_cast<size_t>(m.from)].in_flight) {
      const size_t bytes = std::min(m.data.size(), piece_bytes(m.from));
      MPI_Request request = MPI_REQUEST_NULL;
      HEDDLE_RETURN_IF_ERROR(mpi_status(
          MPI_Irecv(m.data.data(), static_cast<int>(bytes), MPI_BYTE, m.from, m.tag, plan_, &request),
          "MPI_Irecv"));
      add_request(request, m.message, -1);
      m.data = m.data.subspan(bytes);
      --m.pieces;
    }
    return {};
  }

  Status await_more() {
    size_t kept = 0;
    for (size_t i = 0; i < awaited_.size(); ++i) {
      Awaited message = awaited_[i];
      if (is_first(message, kept)) HEDDLE_RETURN_IF_ERROR(await_pieces(message));
      if (message.pieces > 0) awaited_[kept++] = message;
    }
    awaited_.resize(kept);
    return {};
  }

  Status take_finished(std::vector<int64_t>& done, bool& moved) {
    int count = 0;
    moved = false;
    finished_.resize(requests_.size());
    HEDDLE_RETURN_IF_ERROR(mpi_status(MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(),
                                                   &count, finished_.data(), MPI_STATUSES_IGNORE),
                                      "MPI_Testsome"));
    if (count == MPI_UNDEFINED || count == 0) return {};
    moved = true;
    std::sort(finished_.begin(), finished_.begin() + count);
    for (int i = 0; i < count; ++i) {
      const Part& part = parts_[static_cast<size_t>(finished_[static_cast<size_t>(i)])];
      Message& message = messages_[static_cast<size_t>(part.message)];
      if (part.queue >= 0) --queues_[static_cast<size_t>(part.queue)].in_flight;
      --message.posted;
      if (--message.left > 0) continue;
      if (message.token != kNoToken) done.push_back(message.token);
      free_.push_back(part.message);
    }
    // The last element replaces a finished one. Going backwards, the last element itself is never finished.
    for (int i = count; i-- > 0;) {
      const auto at = static_cast<size_t>(finished_[static_cast<size_t>(i)]);
      requests_[at] = requests_.back();
      parts_[at] = parts_.back();
      requests_.pop_back();
      parts_.pop_back();
    }
    for (int to = 0; to < size_; ++to) HEDDLE_RETURN_IF_ERROR(start_pieces(to));
    return await_more();
  }

  Status look_for_alarm() {
    if (alarm_) return {};
    int arrived = 0;
    HEDDLE_RETURN_IF_ERROR(
        mpi_status(MPI_Test(&alarm_request_, &arrived, MPI_STATUS_IGNORE), "waiting for alarms"));
    if (arrived == 0) return {};
    alarm_text_.back() = '\0';
    alarm_ = alarm_text_.data();
    return {};
  }

  bool open_ = false, broken_ = false, abandoned_ = false;
  int rank_ = 0, size_ = 1, max_tag_ = 32767;  // 32767: the minimum that the standard guarantees
  std::string host_;
  MPI_Comm plan_ = MPI_COMM_NULL, alarms_ = MPI_COMM_NULL, raw_ = MPI_COMM_NULL;
  std::vector<MPI_Request> requests_;
  std::vector<Part> parts_;  // per request
  std::vector<int> finished_;
  std::vector<Message> messages_;
  std::vector<int32_t> free_;
  std::vector<Awaited> awaited_;   // messages with pieces that MPI does not handle yet, in order
  std::vector<PeerPieces> peers_;  // per rank
  std::vector<Queue> queues_;      // per rank
  std::array<char, kAlarmBytes> alarm_text_{}, alarm_out_{};
  MPI_Request alarm_request_ = MPI_REQUEST_NULL;
  int alarms_sent_ = 0;
  std::optional<std::string> alarm_;
};

}  // namespace

Result<std::unique_ptr<Transport>> make_mpi_transport() {
  auto transport = std::make_unique<MpiTransport>();
  HEDDLE_RETURN_IF_ERROR(transport->open());
  return std::unique_ptr<Transport>(std::move(transport));
}

#else

Result<std::unique_ptr<Transport>> make_mpi_transport() {
  return unsupported(
      "mpirun started this program, but Heddle was built without MPI; install libopenmpi-dev and "
      "openmpi-bin, "
      "configure and build again, or start it without mpirun");
}

#endif

}  // namespace heddle
