#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "background.h"
#include "heddle/base/file.h"
#include "heddle/base/spelling.h"
#include "heddle/cluster/cluster_yaml.h"
#include "heddle/session/clusters.h"
#include "objects.h"

namespace heddle::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

PyCluster cluster_from(const std::string& file_or_preset) {
  auto cluster = call_in_background(nb::none(), Interrupted::kRaises,
                                    [&](const Control&) { return open_cluster(file_or_preset); });
  return {std::move(cluster)};
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const Preset& preset : cluster_presets()) names.push_back(preset.name);
  return names;
}

}  // namespace

void bind_cluster(nb::module_& module) {
  nb::class_<Device>(module, "Device", "A device of a cluster.")
      .def_ro("name", &Device::name, "Unique in the cluster.")
      .def_ro("device_class", &Device::device_class, "Devices of one class take the same times.")
      .def_prop_ro(
          "kind", [](const Device& d) { return device_kind_name(d.kind); },
          "\"cpu\", \"gpu\", \"npu\" or \"fpga\".")
      .def_ro("memory_bytes", &Device::memory_bytes, "0: not limited; CPU devices use their host's memory.")
      .def_ro("peak_flops", &Device::peak_flops, "Of float32, per second; 0: not known.")
      .def_ro("memory_bytes_per_s", &Device::memory_bytes_per_s, "Bandwidth of its memory, bytes/s.")
      .def_ro("cores", &Device::cores, "Core numbers of a CPU device; devices may overlap.")
      .def_ro("engine", &Device::backend, "\"openvino\", \"onnxruntime\", \"torch\" or \"emulated\".")
      .def_prop_ro(
          "precision", [](const Device& d) { return precision_name(d.precision); },
          "The type of computing for float32 parts of a model: \"f32\", \"bf16\", ...")
      .def("__repr__", [](const Device& d) {
        return std::string("<Device ") + d.name + ": " + device_kind_name(d.kind) + ", " + d.device_class +
               ", " + d.backend + ">";
      });
  nb::class_<PyCluster>(module, "Cluster",
                        "Hardware: hosts, devices, links and buses. Cluster(\"box.yaml\") reads a file "
                        "(docs/cluster-format.md); "
                        "InvalidInputError names file, line and key.")
      .def(
          "__init__",
          [](PyCluster* self, const std::filesystem::path& path) {
            new (self) PyCluster(cluster_from(path.string()));
          },
          "path"_a, nb::sig("def __init__(self, path: str | os.PathLike[str]) -> None"))
      .def_static(
          "discover", [] { return cluster_from("preset:local"); },
          "This machine with every device that is found; takes about 0.2 s.")
      .def_static(
          "preset", [](const std::string& name) { return cluster_from("preset:" + name); }, "name"_a,
          "A machine of one of the papers; presets() names them.")
      .def_static("presets", &preset_names, "Names for preset().")
      .def_static(
          "parse",
          [](const std::string& text) { return PyCluster{value_or_raise(parse_cluster_yaml(text, "text"))}; },
          "text"_a, "From the text of a cluster file.")
      .def_prop_ro("name", [](const PyCluster& c) { return c.cluster->name(); })
      .def_prop_ro("devices",
                   [](const PyCluster& c) {
                     const auto devices = c.cluster->devices();
                     return std::vector<Device>(devices.begin(), devices.end());
                   })
      .def(
          "to_yaml", [](const PyCluster& c) { return cluster_to_yaml(*c.cluster); },
          "The text of a cluster file.")
      .def(
          "save",
          [](const PyCluster& c, const std::filesystem::path& path) {
            ok_or_raise(write_file_atomic(path.string(), cluster_to_yaml(*c.cluster)));
          },
          "path"_a, nb::sig("def save(self, path: str | os.PathLike[str]) -> None"), "Writes a cluster file.")
      .def("__repr__", [](const PyCluster& c) {
        return "<Cluster " + c.cluster->name() + ": " + counted(c.cluster->num_devices(), "device") + ">";
      });
}

}  // namespace heddle::python
