#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <openvino/core/version.hpp>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "heddle/base/errors.h"
#include "heddle/base/mapped_file.h"
#include "heddle/base/spelling.h"
#include "heddle/graph/onnxruntime_library.h"
#include "import_record.h"

namespace heddle::internal {
namespace {

constexpr size_t kDigestBytes = 32;
constexpr size_t kChunkBytes = size_t{4} << 20;
constexpr size_t kMostHashThreads = 8;
// Beyond it hashing takes longer than the trial that it saves.
constexpr int64_t kMostHashedBytes = int64_t{64} << 30;

void sha256(std::string_view bytes, char* out) {
  // Fails only if memory is exhausted.
  if (::EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(out), nullptr, ::EVP_sha256(),
                   nullptr) != 1)
    std::abort();
}

// Bytes from which the fields can be read back, so that different fields give different bytes.
class Fields {
 public:
  Fields& number(uint64_t value) {
    static_assert(std::endian::native == std::endian::little);
    std::array<char, sizeof value> bytes{};
    std::memcpy(bytes.data(), &value, sizeof value);
    text_.append(bytes.data(), bytes.size());
    return *this;
  }
  Fields& text(std::string_view value) {
    number(value.size());
    text_ += value;
    return *this;
  }
  const std::string& bytes() const { return text_; }

 private:
  std::string text_;
};

}  // namespace

std::string import_recipe(const std::string& extension, const ImportOptions& options) {
  Fields fields;
  // Increase this when models are passed to OpenVINO in a different way.
  constexpr uint64_t kImporter = 3;
  fields.number(kImporter).text(ov::get_openvino_version().buildNumber).text(extension);
  fields.text(onnxruntime::release());
  fields.number(options.shapes.size());
  for (const auto& [name, shape] : options.shapes) {
    fields.text(name).number(shape.size());
    for (const int64_t d : shape) fields.number(static_cast<uint64_t>(d));
  }
  fields.number(options.values.size());
  for (const auto& [name, values] : options.values) {
    fields.text(name).number(values.size());
    for (const double v : values) fields.number(std::bit_cast<uint64_t>(v));
  }
  fields.number(options.batch.has_value()).number(static_cast<uint64_t>(options.batch.value_or(0)));
  fields.number(static_cast<uint64_t>(options.split_bytes)).number(options.map_weights);
  return fields.bytes();
}

std::string tree_digest(std::string_view bytes, const std::stop_token& stop) {
  const size_t chunks = (bytes.size() + kChunkBytes - 1) / kChunkBytes;
  std::string leaves(chunks * kDigestBytes, '\0');
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < chunks && !stop.stop_requested(); i = next++)
      sha256(bytes.substr(i * kChunkBytes, kChunkBytes), leaves.data() + i * kDigestBytes);
  };
  {
    std::vector<std::jthread> helpers;
    const size_t threads = std::min({chunks, size_t{std::thread::hardware_concurrency()}, kMostHashThreads});
    try {
      while (helpers.size() + 1 < threads) helpers.emplace_back(work);
    } catch (const std::system_error&) {
      // The threads that started do the work.
    }
    work();
  }
  std::string root(kDigestBytes, '\0');
  sha256(Fields().number(bytes.size()).text(leaves).bytes(), root.data());
  return root;
}

Result<std::string> import_digest(const std::string& recipe, std::string_view file,
                                  const std::map<std::string, std::string>& others,
                                  const std::stop_token& stop) {
  Fields all;
  all.text("heddle import").text(recipe).text(tree_digest(file, stop)).number(others.size());
  std::map<std::pair<dev_t, ino_t>, std::string> known;
  int64_t left = kMostHashedBytes;
  for (const auto& [name, path] : others) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) return io_error(quote_text(path) + " cannot be examined");
    auto& digest = known[{info.st_dev, info.st_ino}];
    if (digest.empty()) {
      HEDDLE_ASSIGN_OR_RETURN(const auto other, with_context(MappedFile::open(path, left), path));
      left -= static_cast<int64_t>(other.bytes().size());
      digest = tree_digest(other.bytes(), stop);
    }
    all.text(name).text(digest);
  }
  if (stop.stop_requested()) return cancelled_error("the digest is not needed any more");
  std::array<char, kDigestBytes> digest{};
  sha256(all.bytes(), digest.data());
  std::string hex;
  for (const char c : digest) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return hex;
}

}  // namespace heddle::internal
