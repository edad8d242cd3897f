#include "tensor_files.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "heddle/base/file.h"
#include "heddle/base/json.h"

namespace heddle {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxHeader = 65536, kMaxDimensions = 32;

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

constexpr const char* kUnreadable = "not a readable .npy file";

Error bad_npy(const std::string& what) { return invalid_input(what).with_context(kUnreadable); }

// The header is one Python dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), }. JSON has
// other quotes, brackets and words, and no comma before a closing bracket.
std::string as_json(std::string_view header) {
  std::string text;
  for (const char c : header) {
    const char json = c == '\'' ? '"' : c == '(' ? '[' : c == ')' ? ']' : c;
    if (json == ']' || json == '}') {
      const size_t last = text.find_last_not_of(' ');
      if (last != std::string::npos && text[last] == ',') text.erase(last);
    }
    text += json;
  }
  for (const auto& [python, json] : {std::pair("False", "false"), std::pair("True", "true")}) {
    const size_t at = text.find(python);
    if (at != std::string::npos) text.replace(at, std::strlen(python), json);
  }
  return text;
}

struct Header {
  DType dtype = DType::kUndefined;
  Shape shape;
};

Result<DType> dtype_of(std::string_view code) {
  for (const NpyType& type : kTypes) {
    const bool little_endian = code.size() == 3 && (code[0] == '<' || code[0] == '|' || code[0] == '=');
    if (little_endian && type.code == code.substr(1)) return type.dtype;
  }
  return invalid_input("element type '" + std::string(code.substr(0, 40)) +
                       "' is not supported; use little-endian numbers or bool, for example '<f4'");
}

Result<Header> read_header(std::string_view text) {
  HEDDLE_ASSIGN_OR_RETURN(const Json dictionary, parse_json(as_json(text)));
  const JsonCursor cursor(dictionary, "header");
  HEDDLE_RETURN_IF_ERROR(cursor.check_keys({"descr", "fortran_order", "shape"}));
  HEDDLE_ASSIGN_OR_RETURN(const JsonCursor descr, cursor.at("descr"));
  HEDDLE_ASSIGN_OR_RETURN(const JsonCursor order, cursor.at("fortran_order"));
  HEDDLE_ASSIGN_OR_RETURN(const JsonCursor shape, cursor.at("shape"));
  HEDDLE_ASSIGN_OR_RETURN(const std::string code, descr.as_string());
  HEDDLE_ASSIGN_OR_RETURN(const bool fortran, order.as_bool());
  if (fortran) return invalid_input("the array is in Fortran order; save numpy.ascontiguousarray(a) instead");
  Header header;
  HEDDLE_ASSIGN_OR_RETURN(header.dtype, dtype_of(code));
  HEDDLE_ASSIGN_OR_RETURN(header.shape, shape.as_ints(0, INT64_MAX));
  if (header.shape.size() > kMaxDimensions)
    return invalid_input("more than " + std::to_string(kMaxDimensions) + " dimensions");
  return header;
}

constexpr int64_t kMaxPixels = int64_t{1} << 28;
constexpr std::array kMeans = {0.485F, 0.456F, 0.406F}, kDeviations = {0.229F, 0.224F, 0.225F};

Error bad_picture(const std::string& what) { return invalid_input("not a readable PPM picture: " + what); }

struct Picture {
  int64_t width = 0, height = 0;
  std::string_view pixels;  // rows of red, green, blue
};

// Reads the next number of the header, after spaces and comment lines.
Result<int64_t> header_number(std::string_view content, size_t& at) {
  while (at < content.size()) {
    if (content[at] == '#') {
      while (at < content.size() && content[at] != '\n') ++at;
    } else if (content[at] == ' ' || (content[at] >= '\t' && content[at] <= '\r')) {
      ++at;
    } else {
      break;
    }
  }
  int64_t value = -1;
  for (; at < content.size() && content[at] >= '0' && content[at] <= '9'; ++at) {
    value = std::max<int64_t>(value, 0) * 10 + (content[at] - '0');
    if (value > 1'000'000'000) return bad_picture("a number in the header is too large");
  }
  if (value < 0) return bad_picture("expected a number at byte " + std::to_string(at));
  return value;
}

Result<Picture> parse_header(std::string_view content) {
  if (!content.starts_with("P6")) return bad_picture("it does not start with P6 (binary PPM)");
  size_t at = 2;
  Picture picture;
  HEDDLE_ASSIGN_OR_RETURN(picture.width, header_number(content, at));
  HEDDLE_ASSIGN_OR_RETURN(picture.height, header_number(content, at));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t maximum, header_number(content, at));
  if (maximum != 255)
    return bad_picture("its maximum value is " + std::to_string(maximum) +
                       "; only 255 (8 bits) is supported");
  if (picture.width < 1 || picture.height < 1 || picture.width * picture.height > kMaxPixels) {
    return bad_picture(std::to_string(picture.width) + " x " + std::to_string(picture.height) +
                       " pixels; 1 to " + std::to_string(kMaxPixels) + " are accepted");
  }
  const auto needed = static_cast<size_t>(picture.width * picture.height * 3);
  if (at >= content.size() || content.size() - at - 1 < needed)
    return bad_picture("it ends before its " + std::to_string(needed) + " bytes of pixels");
  picture.pixels = content.substr(at + 1, needed);
  return picture;
}

// Position of a target pixel's centre in the source, along one axis.
struct Sample {
  int64_t low = 0, high = 0;
  float share = 0;  // weight of `high`
};

std::vector<Sample> samples(int64_t from, int64_t to) {
  std::vector<Sample> result(static_cast<size_t>(to));
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  for (int64_t i = 0; i < to; ++i) {
    const double centre =
        std::clamp((static_cast<double>(i) + 0.5) * scale - 0.5, 0.0, static_cast<double>(from - 1));
    const auto low = static_cast<int64_t>(centre);
    result[static_cast<size_t>(i)] = {low, std::min(low + 1, from - 1),
                                      static_cast<float>(centre - static_cast<double>(low))};
  }
  return result;
}

}  // namespace

Result<TensorValue> parse_npy(std::string_view content, int64_t max_bytes) {
  if (!content.starts_with(kMagic) || content.size() < 10)
    return bad_npy("it does not begin with NumPy's magic bytes");
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(content[i])); };
  const size_t version = byte(6);
  if (version < 1 || version > 3)
    return bad_npy("format version " + std::to_string(version) + "; 1 to 3 are known");
  const size_t begin = version == 1 ? 10 : 12;
  if (content.size() < begin) return bad_npy("it ends within the header");
  const size_t length = byte(8) + (byte(9) << 8) + (version == 1 ? 0 : (byte(10) << 16) + (byte(11) << 24));
  if (length > kMaxHeader || length > content.size() - begin)
    return bad_npy("the header claims " + std::to_string(length) + " bytes");
  const auto read = read_header(content.substr(begin, length));
  if (!read.ok()) return Error(read.error()).with_context(kUnreadable);
  const Header& header = *read;
  const auto bytes = tensor_bytes(header.dtype, header.shape);
  const std::string_view data = content.substr(begin + length);
  if (!bytes || *bytes > max_bytes)
    return bad_npy("shape " + shape_text(header.shape) + " needs more than " + std::to_string(max_bytes) +
                   " bytes");
  if (static_cast<size_t>(*bytes) != data.size()) {
    return bad_npy("shape " + shape_text(header.shape) + " of " + dtype_name(header.dtype) + " needs " +
                   std::to_string(*bytes) + " bytes of data, there are " + std::to_string(data.size()));
  }
  HEDDLE_ASSIGN_OR_RETURN(TensorValue value, make_tensor(header.dtype, header.shape));
  if (!data.empty()) std::memcpy(value.data.get(), data.data(), data.size());
  return value;
}

Result<TensorValue> read_npy(const std::string& path) {
  HEDDLE_ASSIGN_OR_RETURN(const std::string content,
                          read_file(path, kMaxNpyBytes + static_cast<int64_t>(kMaxHeader) + 12));
  auto value = parse_npy(content);
  if (!value.ok()) return std::move(value).error().with_context(path);
  return value;
}

bool has_npy_type(DType dtype) {
  return dtype == DType::kBF16 || std::any_of(kTypes.begin(), kTypes.end(),
                                              [dtype](const NpyType& type) { return type.dtype == dtype; });
}

Result<std::string> npy_content(const TensorView& tensor) {
  const DType written = tensor.dtype == DType::kBF16 ? DType::kF32 : tensor.dtype;
  const auto type =
      std::find_if(kTypes.begin(), kTypes.end(), [written](const NpyType& t) { return t.dtype == written; });
  if (type == kTypes.end())
    return unsupported(std::string("NumPy has no type for ") + dtype_name(tensor.dtype));
  std::string shape;
  for (const int64_t size : tensor.shape) shape += std::to_string(size) + ", ";
  std::string header = "{'descr': '" + std::string(dtype_bits(written) == 8 ? "|" : "<") +
                       std::string(type->code) + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  // Magic bytes, version, the header's length, and the header together are a multiple of 64 bytes.
  constexpr size_t kBefore = 10, kUnit = 64;
  header.append((kUnit - (kBefore + header.size() + 1) % kUnit) % kUnit, ' ');
  header += '\n';
  std::string content(kMagic);
  content += {'\x01', '\x00', static_cast<char>(header.size() & 255), static_cast<char>(header.size() >> 8)};
  content += header;
  const std::string_view data(reinterpret_cast<const char*>(tensor.data), static_cast<size_t>(tensor.bytes));
  if (written == tensor.dtype) return content.append(data);
  for (size_t i = 0; i + 1 < data.size(); i += 2)  // a bf16 is the upper half of an f32
    content.append({'\0', '\0', data[i], data[i + 1]});
  return content;
}

Result<TensorValue> parse_image_ppm(std::string_view content, const Shape& shape) {
  if (shape.size() != 4 || shape[1] != 3 || shape[0] < 1 || shape[2] < 1 || shape[3] < 1) {
    return invalid_input("a picture feeds inputs of shape Nx3xHxW, not " + shape_text(shape));
  }
  HEDDLE_ASSIGN_OR_RETURN(const Picture picture, parse_header(content));
  HEDDLE_ASSIGN_OR_RETURN(TensorValue value, make_tensor(DType::kF32, shape));
  auto* out = reinterpret_cast<float*>(value.data.get());
  const auto rows = samples(picture.height, shape[2]);
  const auto columns = samples(picture.width, shape[3]);
  const auto pixel = [&](int64_t y, int64_t x, int64_t channel) {
    return static_cast<float>(static_cast<unsigned char>(
        picture.pixels[static_cast<size_t>((y * picture.width + x) * 3 + channel)]));
  };
  size_t at = 0;
  for (int64_t channel = 0; channel < 3; ++channel) {
    const float mean = kMeans[static_cast<size_t>(channel)];
    const float deviation = kDeviations[static_cast<size_t>(channel)];
    for (const Sample& y : rows) {
      for (const Sample& x : columns) {
        const float top = std::lerp(pixel(y.low, x.low, channel), pixel(y.low, x.high, channel), x.share);
        const float bottom =
            std::lerp(pixel(y.high, x.low, channel), pixel(y.high, x.high, channel), x.share);
        out[at++] = (std::lerp(top, bottom, y.share) / 255.0F - mean) / deviation;
      }
    }
  }
  for (int64_t n = 1; n < shape[0]; ++n)
    std::memcpy(out + static_cast<size_t>(n) * at, out, at * sizeof(float));
  return value;
}

Result<TensorValue> read_image_ppm(const std::string& path, const Shape& shape) {
  HEDDLE_ASSIGN_OR_RETURN(const std::string content, read_file(path, kMaxPixels * 3 + 4096));
  auto value = parse_image_ppm(content, shape);
  if (!value.ok()) return std::move(value).error().with_context(path);
  return value;
}

}  // namespace heddle
