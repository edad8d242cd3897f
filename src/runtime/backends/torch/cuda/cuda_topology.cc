// Reads the machine's GPUs from the CUDA driver, the management library and sysfs.
#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iterator>
#include <map>

#include "cuda_driver.h"

namespace heddle::torch_backend {
namespace {

// The used part of the management library's interface: its ABI is stable, its header not always installed.
struct ManagementPciInfo {
  char short_bus_id[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
using ManagedDevice = void*;
constexpr int kManagementSuccess = 0;
constexpr unsigned kMostNvLinks = 18;

class Management {
 public:
  Management() {
    library_ = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) return;
    load(init_, "nvmlInit_v2");
    load(handle_, "nvmlDeviceGetHandleByPciBusId_v2");
    load(generation_, "nvmlDeviceGetMaxPcieLinkGeneration");
    load(width_, "nvmlDeviceGetMaxPcieLinkWidth");
    load(link_state_, "nvmlDeviceGetNvLinkState");
    load(link_version_, "nvmlDeviceGetNvLinkVersion");
    load(link_remote_, "nvmlDeviceGetNvLinkRemotePciInfo_v2");
    ready_ = complete_ && init_() == kManagementSuccess;
  }
  bool ready() const { return ready_; }
  ManagedDevice device(const std::string& bus_id) const {
    ManagedDevice device = nullptr;
    return handle_(bus_id.c_str(), &device) == kManagementSuccess ? device : nullptr;
  }
  double pcie_bytes_per_s(ManagedDevice device) const {
    unsigned generation = 0, width = 0;
    if (generation_(device, &generation) != kManagementSuccess ||
        width_(device, &width) != kManagementSuccess)
      return 0;
    // Bytes per second and lane, after line coding (PCI Express base specification).
    static constexpr double kLane[] = {0, 0.25e9, 0.5e9, 0.985e9, 1.969e9, 3.938e9, 7.563e9};
    return generation < std::size(kLane) ? kLane[generation] * width : 0;
  }
  // [remote end] bytes per second of the links to it; "" is a switch.
  std::map<std::string, double> nv_links(ManagedDevice device, const std::vector<std::string>& gpus) const {
    std::map<std::string, double> result;
    for (unsigned link = 0; link < kMostNvLinks; ++link) {
      unsigned active = 0, version = 0;
      if (link_state_(device, link, &active) != kManagementSuccess || active == 0) continue;
      ManagementPciInfo remote{};
      if (link_version_(device, link, &version) != kManagementSuccess ||
          link_remote_(device, link, &remote) != kManagementSuccess)
        continue;
      // One direction of one link (NVIDIA's datasheets).
      static constexpr double kLink[] = {0, 20e9, 25e9, 25e9, 25e9, 50e9};
      std::string end = remote.bus_id;
      if (std::find(gpus.begin(), gpus.end(), end) == gpus.end()) end.clear();
      result[end] += version < std::size(kLink) ? kLink[version] : kLink[std::size(kLink) - 1];
    }
    return result;
  }

 private:
  template <class F>
  void load(F& f, const char* name) {
    f = reinterpret_cast<F>(dlsym(library_, name));
    complete_ = complete_ && f != nullptr;
  }
  void* library_ = nullptr;  // never closed
  bool complete_ = true, ready_ = false;
  int (*init_)() = nullptr;
  int (*handle_)(const char*, ManagedDevice*) = nullptr;
  int (*generation_)(ManagedDevice, unsigned*) = nullptr;
  int (*width_)(ManagedDevice, unsigned*) = nullptr;
  int (*link_state_)(ManagedDevice, unsigned, unsigned*) = nullptr;
  int (*link_version_)(ManagedDevice, unsigned, unsigned*) = nullptr;
  int (*link_remote_)(ManagedDevice, unsigned, ManagementPciInfo*) = nullptr;
};

int lanes_of_flops(int major, int minor) {
  // float32 units per multiprocessor (CUDA C++ Programming Guide, arithmetic instructions).
  if (major == 6) return minor == 0 ? 64 : 128;
  if (major == 7 || (major == 8 && minor == 0)) return 64;
  return 128;
}

// The host port of a device: the first component below the root of its sysfs path.
std::string port_of(std::string bus_id) {
  std::transform(bus_id.begin(), bus_id.end(), bus_id.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::error_code failed;
  const auto path = std::filesystem::canonical("/sys/bus/pci/devices/" + bus_id, failed);
  if (failed) return "";
  for (auto part = path.begin(); part != path.end(); ++part) {
    if (part->string().starts_with("pci") && std::next(part) != path.end()) return std::next(part)->string();
  }
  return "";
}

int attribute(const CudaDriver& cuda, CUdevice device, CUdevice_attribute which) {
  int value = 0;
  return cuda.cuDeviceGetAttribute(&value, which, device) == CUDA_SUCCESS ? value : 0;
}

GpuInfo describe(const CudaDriver& cuda, int index, CUdevice device) {
  GpuInfo gpu;
  gpu.index = index;
  char text[256] = {};
  if (cuda.cuDeviceGetName(text, sizeof text, device) == CUDA_SUCCESS) gpu.name = text;
  size_t bytes = 0;
  if (cuda.cuDeviceTotalMem(&bytes, device) == CUDA_SUCCESS) gpu.memory_bytes = static_cast<int64_t>(bytes);
  const auto get = [&](CUdevice_attribute which) { return attribute(cuda, device, which); };
  const double clock = 1e3 * get(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);  // kHz to Hz
  const int lanes = lanes_of_flops(get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
                                   get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  gpu.flops = 2.0 * clock * lanes * get(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  // Two transfers per clock; the width is in bits.
  gpu.memory_bytes_per_s = 2e3 * get(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE) *
                           get(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH) / 8.0;
  gpu.copy_engines = std::clamp(get(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT), 1, 2);
  return gpu;
}

}  // namespace

int compute_capability_major(int index) {
  const auto driver = cuda_driver();
  CUdevice device = 0;
  if (!driver.ok() || (*driver)->cuDeviceGet(&device, index) != CUDA_SUCCESS) return 0;
  return attribute(**driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
}

GpuTopology read_cuda_topology() {
  GpuTopology topology;
  const auto driver = cuda_driver();
  if (!driver.ok()) return topology;
  const CudaDriver& cuda = **driver;
  int count = 0;
  if (cuda.cuDeviceGetCount(&count) != CUDA_SUCCESS) return topology;
  static const Management management;
  std::vector<CUdevice> devices;
  std::vector<std::string> bus_ids;
  for (int i = 0; i < count; ++i) {
    CUdevice device = 0;
    char bus_id[32] = {};
    if (cuda.cuDeviceGet(&device, i) != CUDA_SUCCESS) continue;
    if (cuda.cuDeviceGetPCIBusId(bus_id, sizeof bus_id, device) != CUDA_SUCCESS) bus_id[0] = 0;
    GpuInfo gpu = describe(cuda, i, device);
    gpu.port = port_of(bus_id);
    const ManagedDevice managed = management.ready() ? management.device(bus_id) : nullptr;
    if (managed != nullptr) gpu.pcie_bytes_per_s = management.pcie_bytes_per_s(managed);
    devices.push_back(device);
    bus_ids.emplace_back(bus_id);
    topology.gpus.push_back(std::move(gpu));
  }
  std::vector<std::map<std::string, double>> links(devices.size());
  for (size_t i = 0; i < devices.size(); ++i) {
    const ManagedDevice managed = management.ready() ? management.device(bus_ids[i]) : nullptr;
    if (managed != nullptr) links[i] = management.nv_links(managed, bus_ids);
  }
  for (size_t a = 0; a < devices.size(); ++a) {
    for (size_t b = a + 1; b < devices.size(); ++b) {
      int there = 0, back = 0;
      if (cuda.cuDeviceCanAccessPeer(&there, devices[a], devices[b]) != CUDA_SUCCESS || there == 0) continue;
      if (cuda.cuDeviceCanAccessPeer(&back, devices[b], devices[a]) != CUDA_SUCCESS || back == 0) continue;
      const GpuInfo &first = topology.gpus[a], &second = topology.gpus[b];
      GpuPeers peers{.a = first.index, .b = second.index};
      const auto direct = links[a].find(bus_ids[b]), up = links[a].find(""), down = links[b].find("");
      if (direct != links[a].end()) {
        peers.bytes_per_s = direct->second;
      } else if (up != links[a].end() && down != links[b].end()) {
        peers.bytes_per_s = std::min(up->second, down->second);
      } else {
        // Over PCIe, the copy is known to bypass the host only if both are behind one host port.
        if (first.port.empty() || first.port != second.port) continue;
        peers.by_port = true;
        peers.bytes_per_s = std::min(first.pcie_bytes_per_s, second.pcie_bytes_per_s);
      }
      topology.peers.push_back(peers);
    }
  }
  return topology;
}

}  // namespace heddle::torch_backend
