// ONNX Runtime's C interface: a table of functions that the shared library of the wheel `onnxruntime` returns. The
// table only grows at its end, so the place of a function never changes; only functions of the table's
// versions 1 to 5 are used, each declared here by its place (https://onnxruntime.ai/docs/api/c/struct_ort_api.html).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "heddle/base/status.h"
#include "heddle/graph/types.h"

namespace heddle::onnxruntime {

// Objects of the library, behind pointers only.
struct Status;
struct Env;
struct Session;
struct SessionOptions;
struct RunOptions;
struct Value;
struct MemoryInfo;
struct Allocator;
struct ShapeInfo;
struct TypeInfo;

// The library's numbers of element types.
inline constexpr std::pair<DType, int> kElementTypes[] = {
    {DType::kF32, 1},  {DType::kU8, 2},   {DType::kI8, 3},   {DType::kU16, 4},  {DType::kI16, 5},
    {DType::kI32, 6},  {DType::kI64, 7},  {DType::kBool, 9}, {DType::kF16, 10}, {DType::kF64, 11},
    {DType::kU32, 12}, {DType::kU64, 13}, {DType::kBF16, 16}};
inline constexpr int kArenaAllocator = 1, kDefaultMemory = 0;

// Functions that return a Status return null if they succeed.
struct Api {
  const char* (*error_message)(const Status*) = nullptr;
  Status* (*create_env)(int severity, const char* id, Env**) = nullptr;
  Status* (*create_session)(const Env*, const char* path, const SessionOptions*, Session**) = nullptr;
  Status* (*create_session_from_bytes)(const Env*, const void*, size_t, const SessionOptions*,
                                       Session**) = nullptr;
  Status* (*run)(Session*, const RunOptions*, const char* const* input_names, const Value* const* inputs,
                 size_t num_inputs, const char* const* output_names, size_t num_outputs,
                 Value** outputs) = nullptr;
  Status* (*create_session_options)(SessionOptions**) = nullptr;
  Status* (*set_intra_op_threads)(SessionOptions*, int) = nullptr;
  Status* (*set_inter_op_threads)(SessionOptions*, int) = nullptr;
  Status* (*set_optimization)(SessionOptions*, int level) = nullptr;
  Status* (*input_count)(const Session*, size_t*) = nullptr;
  Status* (*output_count)(const Session*, size_t*) = nullptr;
  Status* (*output_type)(const Session*, size_t, TypeInfo**) = nullptr;
  Status* (*input_name)(const Session*, size_t, Allocator*, char**) = nullptr;
  Status* (*output_name)(const Session*, size_t, Allocator*, char**) = nullptr;
  Status* (*tensor_on)(const MemoryInfo*, void* data, size_t bytes, const int64_t* shape, size_t rank,
                       int type, Value**) = nullptr;
  Status* (*is_tensor)(const Value*, int*) = nullptr;
  Status* (*data)(Value*, void**) = nullptr;
  // The tensor's part of a type belongs to it; null if the type is no tensor.
  Status* (*tensor_type)(const TypeInfo*, const ShapeInfo**) = nullptr;
  Status* (*element_type)(const ShapeInfo*, int*) = nullptr;
  Status* (*rank)(const ShapeInfo*, size_t*) = nullptr;
  Status* (*shape)(const ShapeInfo*, int64_t*, size_t) = nullptr;
  Status* (*shape_info)(const Value*, ShapeInfo**) = nullptr;
  Status* (*cpu_memory)(int allocator_type, int memory_type, MemoryInfo**) = nullptr;
  Status* (*free)(Allocator*, void*) = nullptr;
  Status* (*default_allocator)(Allocator**) = nullptr;
  void (*release_status)(Status*) = nullptr;
  void (*release_session)(Session*) = nullptr;
  void (*release_value)(Value*) = nullptr;
  void (*release_shape_info)(ShapeInfo*) = nullptr;
  void (*release_type)(TypeInfo*) = nullptr;
  void (*release_session_options)(SessionOptions*) = nullptr;
  Status* (*available_providers)(char*** names, int* count) = nullptr;
  Status* (*release_available_providers)(char** names, int count) = nullptr;
  Status* (*set_entry)(SessionOptions*, const char* key, const char* value) = nullptr;

  // One of each per process, never released.
  Env* env = nullptr;
  MemoryInfo* host_memory = nullptr;
  std::string version;  // "1.31.1"
};

// Loads the library on the first call. Unsupported, with the reason, if it cannot be used. Thread-safe.
Result<const Api*> library();
// Of the library that is installed, which is not loaded for this; empty: none is.
std::string release();

// OK, or an error with the library's message; releases the status.
heddle::Status checked(const Api& api, Status* status, const std::string& doing);

}  // namespace heddle::onnxruntime
