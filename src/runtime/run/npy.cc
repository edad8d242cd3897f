#include "npy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "heddle/base/file.h"

namespace heddle {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxHeader = 65536;

struct NpyType {
  std::string_view code;  // without the byte order
  DType dtype;
};
constexpr std::array<NpyType, 12> kTypes = {{{"b1", DType::kBool},
                                             {"i1", DType::kI8},
                                             {"u1", DType::kU8},
                                             {"i2", DType::kI16},
                                             {"u2", DType::kU16},
                                             {"i4", DType::kI32},
                                             {"u4", DType::kU32},
                                             {"i8", DType::kI64},
                                             {"u8", DType::kU64},
                                             {"f2", DType::kF16},
                                             {"f4", DType::kF32},
                                             {"f8", DType::kF64}}};

Error bad_npy(const std::string& what) {
  return Error(Code::kInvalidInput, "not a readable .npy file: " + what);
}

// The header is one Python dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), }.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, const NpyLimits& limits) : text_(text), limits_(limits) {}

  Status read() {
    HEDDLE_RETURN_IF_ERROR(expect('{'));
    while (!peek('}')) {
      HEDDLE_ASSIGN_OR_RETURN(const std::string_view key, quoted());
      HEDDLE_RETURN_IF_ERROR(expect(':'));
      HEDDLE_RETURN_IF_ERROR(value(key));
      if (!peek(',')) break;
      ++at_;
    }
    HEDDLE_RETURN_IF_ERROR(expect('}'));
    skip();
    if (at_ != text_.size()) return bad_npy("text after the header's dictionary");
    if (seen_ != 7) return bad_npy("the header must have 'descr', 'fortran_order' and 'shape'");
    return {};
  }

  DType dtype = DType::kUndefined;
  Shape shape;

 private:
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool peek(char c) {
    skip();
    return at_ < text_.size() && text_[at_] == c;
  }
  Status expect(char c) {
    if (!peek(c))
      return bad_npy(std::string("expected '") + c + "' at byte " + std::to_string(at_) + " of the header");
    ++at_;
    return {};
  }
  Result<std::string_view> quoted() {
    skip();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"'))
      return bad_npy("expected a quoted word at byte " + std::to_string(at_) + " of the header");
    const size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) return bad_npy("a quoted word has no end");
    const std::string_view word = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return word;
  }
  Status once(int bit, std::string_view key) {
    if ((seen_ & bit) != 0) return bad_npy("the header has '" + std::string(key) + "' twice");
    seen_ |= bit;
    return {};
  }

  Status value(std::string_view key) {
    if (key == "descr") {
      HEDDLE_RETURN_IF_ERROR(once(1, key));
      HEDDLE_ASSIGN_OR_RETURN(const std::string_view code, quoted());
      return read_dtype(code);
    }
    if (key == "fortran_order") {
      HEDDLE_RETURN_IF_ERROR(once(2, key));
      skip();
      if (text_.substr(at_).starts_with("False")) {
        at_ += 5;
        return {};
      }
      if (text_.substr(at_).starts_with("True"))
        return bad_npy("the array is in Fortran order; save numpy.ascontiguousarray(a) instead");
      return bad_npy("'fortran_order' must be True or False");
    }
    if (key == "shape") {
      HEDDLE_RETURN_IF_ERROR(once(4, key));
      return read_shape();
    }
    return bad_npy("unknown key '" + std::string(key.substr(0, 40)) + "' in the header");
  }

  Status read_dtype(std::string_view code) {
    const std::string shown(code.substr(0, 40));
    if (code.size() != 3 || (code[0] != '<' && code[0] != '|' && code[0] != '=')) {
      return bad_npy("element type '" + shown +
                     "' is not supported; use little-endian numbers or bool, for example '<f4'");
    }
    for (const NpyType& type : kTypes) {
      if (type.code != code.substr(1)) continue;
      dtype = type.dtype;
      return {};
    }
    return bad_npy("element type '" + shown +
                   "' is not supported; use little-endian numbers or bool, for example '<f4'");
  }

  Status read_shape() {
    HEDDLE_RETURN_IF_ERROR(expect('('));
    while (!peek(')')) {
      int64_t size = 0;
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), size);
      if (error != std::errc() || size < 0)
        return bad_npy("expected a size of at least 0 at byte " + std::to_string(at_) + " of the header");
      at_ = static_cast<size_t>(end - text_.data());
      shape.push_back(size);
      if (static_cast<int>(shape.size()) > limits_.max_dimensions)
        return bad_npy("more than " + std::to_string(limits_.max_dimensions) + " dimensions");
      if (!peek(',')) break;
      ++at_;
    }
    return expect(')');
  }

  std::string_view text_;
  const NpyLimits& limits_;
  size_t at_ = 0;
  int seen_ = 0;
};

}  // namespace

Result<TensorValue> parse_npy(std::string_view content, const NpyLimits& limits) {
  if (!content.starts_with(kMagic) || content.size() < 10)
    return bad_npy("it does not start with NumPy's mark");
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(content[i])); };
  const size_t version = byte(6);
  if (version < 1 || version > 3)
    return bad_npy("format version " + std::to_string(version) + "; 1 to 3 are known");
  const size_t begin = version == 1 ? 10 : 12;
  if (content.size() < begin) return bad_npy("it ends within the header");
  const size_t length = byte(8) + (byte(9) << 8) + (version == 1 ? 0 : (byte(10) << 16) + (byte(11) << 24));
  if (length > kMaxHeader || length > content.size() - begin)
    return bad_npy("the header claims " + std::to_string(length) + " bytes");
  HeaderReader header(content.substr(begin, length), limits);
  HEDDLE_RETURN_IF_ERROR(header.read());
  const auto bytes = tensor_bytes(header.dtype, header.shape);
  const std::string_view data = content.substr(begin + length);
  if (!bytes || *bytes > limits.max_bytes)
    return bad_npy("shape " + shape_text(header.shape) + " needs more than " +
                   std::to_string(limits.max_bytes) + " bytes");
  if (static_cast<size_t>(*bytes) != data.size()) {
    return bad_npy("shape " + shape_text(header.shape) + " of " + dtype_name(header.dtype) + " needs " +
                   std::to_string(*bytes) + " bytes of data, there are " + std::to_string(data.size()));
  }
  HEDDLE_ASSIGN_OR_RETURN(TensorValue value, make_tensor(header.dtype, header.shape));
  if (!data.empty()) std::memcpy(value.data.get(), data.data(), data.size());
  return value;
}

Result<TensorValue> read_npy(const std::string& path, const NpyLimits& limits) {
  HEDDLE_ASSIGN_OR_RETURN(const std::string content,
                          read_file(path, limits.max_bytes + static_cast<int64_t>(kMaxHeader) + 12));
  auto value = parse_npy(content, limits);
  if (!value.ok()) return std::move(value).error().with_context(path);
  return value;
}

Result<std::string> npy_text(const TensorView& tensor) {
  const auto type =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const NpyType& t) { return t.dtype == tensor.dtype; });
  if (type == kTypes.end())
    return Error(Code::kUnsupported,
                 std::string("NumPy has no element type for ") + dtype_name(tensor.dtype));
  std::string header = "{'descr': '" + std::string(dtype_bits(tensor.dtype) == 8 ? "|" : "<") +
                       std::string(type->code) + "', 'fortran_order': False, 'shape': (";
  for (int64_t d : tensor.shape) header += std::to_string(d) + ", ";
  header += "), }";
  if (tensor.shape.size() > 1) header.erase(header.size() - 6, 2);  // Python writes "(1, 3)", but "(3,)"
  // Data starts at a multiple of 64; the header ends with a newline.
  header.append((64 - (10 + header.size() + 1) % 64) % 64, ' ');
  header += '\n';
  std::string text(kMagic);
  text += '\x01';
  text += '\0';
  text += static_cast<char>(header.size() & 255);
  text += static_cast<char>(header.size() >> 8);
  text += header;
  text.append(reinterpret_cast<const char*>(tensor.data), static_cast<size_t>(tensor.bytes));
  return text;
}

Status write_npy(const std::string& path, const TensorView& tensor) {
  HEDDLE_ASSIGN_OR_RETURN(const std::string text, npy_text(tensor));
  return write_file_atomic(path, text);
}

}  // namespace heddle
