// Messages on their way from one end of a stream to the other.
#include <algorithm>

#include "simulated_network.h"

namespace heddle {

std::shared_ptr<SimulatedPipe> SimulatedNetwork::new_pipe() {
  auto pipe = std::make_shared<SimulatedPipe>();
  pipe->id = ++pipe_count_;
  pipe->process[1] = Simulation::current().process();
  std::erase_if(pipes_, [](const auto& p) { return p.expired(); });
  pipes_.push_back(pipe);
  return pipe;
}

int64_t SimulatedNetwork::delay() {
  auto& random = Simulation::current().random();
  if (delays.spikes > 0 && random.chance(delays.spikes))
    return random.between(delays.most_ns, delays.longest_ns);
  return random.between(delays.least_ns, delays.most_ns);
}

int64_t SimulatedNetwork::cut_until(Simulation::Process from, Simulation::Process to) const {
  const auto it = cuts_.find({from, to});
  return it == cuts_.end() ? 0 : it->second;
}

void SimulatedNetwork::push(SimulatedPipe& pipe, int end, SimulatedPacket packet) {
  if (pipe.dead[1 - end]) return;
  auto& simulation = Simulation::current();
  auto& half = pipe.to[end];
  half.last_at = packet.at = std::max(half.last_at, simulation.now() + delay());
  half.bytes += packet.bytes.size();
  half.packets.push_back(std::move(packet));
  if (half.bytes > most_stream_bytes || half.packets.size() > most_stream_messages)
    simulation.fail("stream " + std::to_string(pipe.id) + ": " + std::to_string(half.packets.size()) +
                    " messages, " + std::to_string(half.bytes) + " bytes are on their way in one direction");
  simulation.wake(&half);
}

int64_t SimulatedNetwork::next_at(const SimulatedPipe& pipe, int end) const {
  const auto& half = pipe.to[end];
  if (half.packets.empty()) return INT64_MAX;
  return std::max(half.packets.front().at, cut_until(pipe.process[1 - end], pipe.process[end]));
}

SimulatedPacket SimulatedNetwork::pop(SimulatedPipe& pipe, int end) {
  auto& half = pipe.to[end];
  SimulatedPacket packet = std::move(half.packets.front());
  half.packets.pop_front();
  half.bytes -= packet.bytes.size();
  return packet;
}

std::shared_ptr<SimulatedNetwork::Listening> SimulatedNetwork::connect(SimulatedPipe& pipe,
                                                                       const std::string& address,
                                                                       int64_t patience) {
  auto& simulation = Simulation::current();
  const int64_t until = simulation.now() + patience;
  int64_t there = simulation.now() + delay();
  while (simulation.now() < there) {
    simulation.wait(&there, std::min(there, until));
    if (pipe.dead[1] || simulation.now() >= until) return nullptr;
    if (const auto it = listening_.find(address); it != listening_.end()) {
      const auto& process = it->second->process;
      there = std::max({there, cut_until(pipe.process[1], process), cut_until(process, pipe.process[1])});
    }
  }
  const auto it = listening_.find(address);
  if (it == listening_.end()) return nullptr;
  pipe.process[0] = it->second->process;
  pipe.connected = true;
  return it->second;
}

void SimulatedNetwork::message_read() {
  auto& simulation = Simulation::current();
  const auto it = readers_held_.find(simulation.process());
  if (it == readers_held_.end()) return;
  constexpr int64_t kMostPlaces = 12;  // where others may go on while a message is handled
  if (it->second > simulation.now())
    simulation.hold_up_here(static_cast<uint64_t>(simulation.random().between(1, kMostPlaces)), it->second);
  readers_held_.erase(it);
}

void SimulatedNetwork::forget(const std::string& address, const std::shared_ptr<Listening>& listening) {
  const auto it = listening_.find(address);
  if (it != listening_.end() && it->second == listening) listening_.erase(it);
}

void SimulatedNetwork::cut(Simulation::Process from, Simulation::Process to, int64_t until) {
  cuts_[{from, to}] = until;
}

void SimulatedNetwork::heal_all() {
  cuts_.clear();
  readers_held_.clear();
  for (const auto& weak : pipes_)
    if (const auto pipe = weak.lock())
      for (const auto& half : pipe->to) Simulation::current().wake(&half);
}

}  // namespace heddle
