#include "heddle/graph/onnxruntime_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <type_traits>

#include "heddle/base/wheels.h"

namespace heddle::onnxruntime {
namespace {

// What the library exports: a way to its version and to the table.
struct ApiBase {
  const void* const* (*table)(uint32_t version);
  const char* (*version)();
};

constexpr uint32_t kTableVersion = 5;
constexpr int kOnlyFatal = 4;  // severity of the messages that the library logs; errors are returned

Result<std::string> find_library() { return find_in_wheels("onnxruntime/capi/libonnxruntime.so.*"); }

Result<Api> load() {
  const auto library = find_library();
  if (!library.ok()) return unsupported("ONNX Runtime cannot be loaded: " + library.error().to_string());
  void* handle = ::dlopen(library->c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) return unsupported(std::string("ONNX Runtime cannot be loaded: ") + ::dlerror());
  auto* const base_of = reinterpret_cast<const ApiBase* (*)()>(::dlsym(handle, "OrtGetApiBase"));
  const ApiBase* const base = base_of != nullptr ? base_of() : nullptr;
  const void* const* const table = base != nullptr ? base->table(kTableVersion) : nullptr;
  if (table == nullptr) return unsupported(*library + " does not have the C interface of ONNX Runtime");
  Api api;
  api.version = base->version();
  const auto take = [table](auto& function, size_t place) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(const_cast<void*>(table[place]));
  };
  take(api.error_message, 2);
  take(api.create_env, 3);
  take(api.create_session, 7);
  take(api.create_session_from_bytes, 8);
  take(api.run, 9);
  take(api.create_session_options, 10);
  take(api.set_optimization, 23);
  take(api.set_intra_op_threads, 24);
  take(api.set_inter_op_threads, 25);
  take(api.input_count, 30);
  take(api.output_count, 31);
  take(api.output_type, 34);
  take(api.input_name, 36);
  take(api.output_name, 37);
  take(api.tensor_on, 49);
  take(api.is_tensor, 50);
  take(api.data, 51);
  take(api.tensor_type, 55);
  take(api.element_type, 60);
  take(api.rank, 61);
  take(api.shape, 62);
  take(api.shape_info, 65);
  take(api.cpu_memory, 69);
  take(api.free, 76);
  take(api.default_allocator, 78);
  take(api.release_status, 93);
  take(api.release_session, 95);
  take(api.release_value, 96);
  take(api.release_type, 98);
  take(api.release_shape_info, 99);
  take(api.release_session_options, 100);
  take(api.available_providers, 125);
  take(api.release_available_providers, 126);
  take(api.set_entry, 130);
  HEDDLE_RETURN_IF_ERROR(checked(api, api.create_env(kOnlyFatal, "heddle", &api.env), "starting"));
  HEDDLE_RETURN_IF_ERROR(checked(api, api.cpu_memory(kArenaAllocator, kDefaultMemory, &api.host_memory),
                                 "describing the host's memory"));
  return api;
}

}  // namespace

Result<const Api*> library() {
  static const auto* const loaded = new Result<Api>(load());  // never destroyed: sessions may outlive statics
  if (!loaded->ok()) return loaded->error();
  return &loaded->value();
}

std::string release() {
  const auto library = find_library();
  // The name of the library ends in its release.
  return library.ok() ? std::filesystem::path(*library).filename().string() : std::string();
}

heddle::Status checked(const Api& api, Status* status, const std::string& doing) {
  if (status == nullptr) return {};
  std::string message = api.error_message(status);
  api.release_status(status);
  std::replace(message.begin(), message.end(), '\n', ' ');
  // Places in the library's sources: file, line and function.
  static const std::regex place("/onnxruntime_src/[^ ]+ [^)]*\\) (const )?");
  message = std::regex_replace(message, place, "");
  message.erase(message.find_last_not_of(' ') + 1);
  return unsupported("ONNX Runtime failed at " + doing + ": " + message);
}

}  // namespace heddle::onnxruntime
