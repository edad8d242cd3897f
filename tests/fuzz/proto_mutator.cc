#include "proto_mutator.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <map>

#include "heddle/base/random.h"
#include "mutator.h"

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using heddle::Random;

constexpr size_t kMostFrames = 200;
constexpr size_t kMostSamples = 64;    // of a field, from the seeds
constexpr size_t kMostBytes = 0xffff;  // of a frame
constexpr int kTries = 4;              // for a result that is small enough

uint64_t any_integer(Random& random, uint64_t old) {
  static const uint64_t kLimits[] = {0,
                                     1,
                                     UINT64_MAX,
                                     127,
                                     128,
                                     255,
                                     256,
                                     257,
                                     0x7fff,
                                     0x8000,
                                     0xffff,
                                     0x7fffffff,
                                     0x80000000,
                                     0xffffffff,
                                     uint64_t{1} << 32,
                                     uint64_t{1} << 53,
                                     uint64_t{1} << 62,
                                     INT64_MAX,
                                     uint64_t{1} << 63,
                                     1000,
                                     1000000,
                                     1000000000,
                                     uint64_t{1} << 30,
                                     uint64_t{36000} * 1000000000};
  switch (random.below(4)) {
    case 0:
      return random.below(12);  // ids are small
    case 1: {
      const uint64_t near[] = {old + 1, old - 1, old * 2, old / 2, ~old + 1};
      return near[random.below(std::size(near))];
    }
    default:
      return kLimits[random.below(std::size(kLimits))];
  }
}

double any_real(Random& random, double old) {
  static const double kLimits[] = {0,
                                   -0.,
                                   1,
                                   -1,
                                   .5,
                                   .1,
                                   1e-300,
                                   5e-324,
                                   1e308,
                                   -1e308,
                                   1e15,
                                   9.3e18,
                                   -9.3e18,
                                   3600,
                                   1e-9,
                                   3.5e38,
                                   std::numeric_limits<double>::infinity(),
                                   -std::numeric_limits<double>::infinity(),
                                   std::numeric_limits<double>::quiet_NaN()};
  const double near[] = {old * 2, old / 2, -old, old + 1};
  return random.below(4) == 0 ? near[random.below(std::size(near))]
                              : kLimits[random.below(std::size(kLimits))];
}

std::string any_text(Random& random, const std::string& old, bool only_ascii) {
  std::string text = old;
  const auto kind = random.below(8);
  if (kind == 0) return {};
  if (kind == 1) return std::string(1 + random.below(300), 'x');
  if (kind == 2) return text + text;
  change_bytes(text);
  // A message with other text than UTF-8 is none.
  if (only_ascii)
    for (char& c : text) c = static_cast<char>(c & 0x7f);
  return text;
}

// A field of a message, or one element of it.
struct Place {
  Message* message = nullptr;
  const FieldDescriptor* field = nullptr;
  int at = -1;  // of a repeated field

  const Reflection& reflection() const { return *message->GetReflection(); }
};

template <class T, class Get, class Set, class GetAt, class SetAt, class Add, class Choose>
void change(const Place& p, Get get, Set set, GetAt get_at, SetAt set_at, Add add, const Choose& choose) {
  const auto& r = p.reflection();
  if (!p.field->is_repeated()) {
    (r.*set)(p.message, p.field, static_cast<T>(choose((r.*get)(*p.message, p.field))));
  } else if (p.at < 0) {
    (r.*add)(p.message, p.field, static_cast<T>(choose(T())));
  } else {
    (r.*set_at)(p.message, p.field, p.at, static_cast<T>(choose((r.*get_at)(*p.message, p.field, p.at))));
  }
}

void change_text(const Place& p, Random& random) {
  const auto& r = p.reflection();
  const bool ascii = p.field->type() == FieldDescriptor::TYPE_STRING;
  if (!p.field->is_repeated()) {
    r.SetString(p.message, p.field, any_text(random, r.GetString(*p.message, p.field), ascii));
  } else if (p.at < 0) {
    r.AddString(p.message, p.field, any_text(random, {}, ascii));
  } else {
    r.SetRepeatedString(p.message, p.field, p.at,
                        any_text(random, r.GetRepeatedString(*p.message, p.field, p.at), ascii));
  }
}

// Gives the field another value; of a repeated one without an element: adds one.
void change_scalar(const Place& p, Random& random) {
  const auto integer = [&random](auto old) { return any_integer(random, static_cast<uint64_t>(old)); };
  const auto real = [&random](auto old) { return any_real(random, static_cast<double>(old)); };
  using R = Reflection;
  switch (p.field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return change<int32_t>(p, &R::GetInt32, &R::SetInt32, &R::GetRepeatedInt32, &R::SetRepeatedInt32,
                             &R::AddInt32, integer);
    case FieldDescriptor::CPPTYPE_INT64:
      return change<int64_t>(p, &R::GetInt64, &R::SetInt64, &R::GetRepeatedInt64, &R::SetRepeatedInt64,
                             &R::AddInt64, integer);
    case FieldDescriptor::CPPTYPE_UINT32:
      return change<uint32_t>(p, &R::GetUInt32, &R::SetUInt32, &R::GetRepeatedUInt32, &R::SetRepeatedUInt32,
                              &R::AddUInt32, integer);
    case FieldDescriptor::CPPTYPE_UINT64:
      return change<uint64_t>(p, &R::GetUInt64, &R::SetUInt64, &R::GetRepeatedUInt64, &R::SetRepeatedUInt64,
                              &R::AddUInt64, integer);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return change<double>(p, &R::GetDouble, &R::SetDouble, &R::GetRepeatedDouble, &R::SetRepeatedDouble,
                            &R::AddDouble, real);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return change<float>(
          p, &R::GetFloat, &R::SetFloat, &R::GetRepeatedFloat, &R::SetRepeatedFloat, &R::AddFloat,
          [&random](float old) {
            const double value = any_real(random, old);  // one too large for the type is infinite
            return std::isfinite(value) && std::abs(value) > 3.4e38 ? std::copysign(1. / 0., value) : value;
          });
    case FieldDescriptor::CPPTYPE_BOOL:
      return change<bool>(p, &R::GetBool, &R::SetBool, &R::GetRepeatedBool, &R::SetRepeatedBool, &R::AddBool,
                          [](bool old) { return !old; });
    case FieldDescriptor::CPPTYPE_ENUM:
      return change<int>(p, &R::GetEnumValue, &R::SetEnumValue, &R::GetRepeatedEnumValue,
                         &R::SetRepeatedEnumValue, &R::AddEnumValue, integer);
    case FieldDescriptor::CPPTYPE_STRING:
      return change_text(p, random);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return;
  }
}

// The elements of a map have no order of their own: by their bytes.
std::vector<int> order_of(const Message& m, const FieldDescriptor* field) {
  std::vector<int> order(static_cast<size_t>(m.GetReflection()->FieldSize(m, field)));
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  if (!field->is_map()) return order;
  std::vector<std::string> bytes;
  for (const int i : order)
    bytes.push_back(m.GetReflection()->GetRepeatedMessage(m, field, i).SerializePartialAsString());
  std::sort(order.begin(), order.end(),
            [&bytes](int a, int b) { return bytes[static_cast<size_t>(a)] < bytes[static_cast<size_t>(b)]; });
  return order;
}

// The message and all that it holds.
void collect(Message& m, std::vector<Message*>& out) {
  out.push_back(&m);
  std::vector<const FieldDescriptor*> fields;
  const auto& r = *m.GetReflection();
  r.ListFields(m, &fields);
  for (const auto* f : fields) {
    if (f->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!f->is_repeated()) {
      collect(*r.MutableMessage(&m, f), out);
    } else {
      for (const int i : order_of(m, f)) collect(*r.MutableRepeatedMessage(&m, f, i), out);
    }
  }
}

// Messages of the seeds, by the fields that they have.
class Samples {
 public:
  void learn(Message& message) {
    std::vector<Message*> all;
    collect(message, all);
    for (auto* m : all) {
      std::vector<const FieldDescriptor*> fields;
      m->GetReflection()->ListFields(*m, &fields);
      const std::shared_ptr<Message> copy(m->New());
      copy->CopyFrom(*m);
      for (const auto* f : fields) {
        auto& samples = samples_[f->full_name()];
        if (samples.size() < kMostSamples) samples.push_back(copy);
      }
    }
  }
  // Null: no seed has the field.
  const Message* with(const FieldDescriptor* field, Random& random) const {
    const auto it = samples_.find(field->full_name());
    return it == samples_.end() ? nullptr : it->second[random.below(it->second.size())].get();
  }

 private:
  std::map<std::string, std::vector<std::shared_ptr<Message>>> samples_;
};

Samples& samples() {
  static Samples all;
  return all;
}

// The field as the sample has it, with all its elements.
void take_field(Message& m, const FieldDescriptor* field, const Message& sample) {
  const std::unique_ptr<Message> only(sample.New());
  only->CopyFrom(sample);
  std::vector<const FieldDescriptor*> fields;
  only->GetReflection()->ListFields(*only, &fields);
  for (const auto* f : fields)
    if (f != field) only->GetReflection()->ClearField(only.get(), f);
  m.GetReflection()->ClearField(&m, field);
  m.MergeFrom(*only);
}

void add_element(const Place& p, Random& random) {
  if (p.field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return change_scalar(p, random);
  const auto& r = p.reflection();
  const int size = r.FieldSize(*p.message, p.field);
  auto* const added = r.AddMessage(p.message, p.field);
  if (size > 0)
    added->CopyFrom(r.GetRepeatedMessage(*p.message, p.field,
                                         static_cast<int>(random.below(static_cast<uint64_t>(size)))));
}

void change_repeated(Message& m, const FieldDescriptor* field, Random& random) {
  const auto& r = *m.GetReflection();
  const auto size = static_cast<uint64_t>(r.FieldSize(m, field));
  const auto kind = random.below(size == 0 ? 2 : 8);
  if (kind == 0) return add_element({&m, field}, random);
  if (kind == 1) {
    for (uint64_t i = uint64_t{1} << random.below(11); i > 0; --i) add_element({&m, field}, random);
    return;
  }
  const auto order = order_of(m, field);
  const int at = order[random.below(size)];
  switch (kind) {
    case 2:
      r.SwapElements(&m, field, at, static_cast<int>(size) - 1);
      return r.RemoveLast(&m, field);
    case 3:
      return r.SwapElements(&m, field, at, order[random.below(size)]);
    case 4:
      return r.ClearField(&m, field);
    default:
      change_scalar({&m, field, at}, random);
  }
}

void change_message(Message& root, Random& random) {
  std::vector<Message*> all;
  collect(root, all);
  Message& m = *all[random.below(all.size())];
  const auto* type = m.GetDescriptor();
  if (type->field_count() == 0) return;
  const auto& r = *m.GetReflection();
  std::vector<const FieldDescriptor*> set;
  r.ListFields(m, &set);
  const auto* field =
      !set.empty() && random.below(2) == 0
          ? set[random.below(set.size())]
          : type->field(static_cast<int>(random.below(static_cast<uint64_t>(type->field_count()))));
  const auto kind = random.below(8);
  if (kind == 0) return r.ClearField(&m, field);
  if (kind == 1) {
    if (const auto* sample = samples().with(field, random)) take_field(m, field, *sample);
    return;
  }
  if (field->is_repeated()) return change_repeated(m, field, random);
  if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return change_scalar({&m, field}, random);
  const auto* sample = samples().with(field, random);
  if (sample != nullptr && random.below(2) == 0) return take_field(m, field, *sample);
  r.MutableMessage(&m, field);
}

std::string bytes_of(const Message& m) {
  std::string out;
  {
    google::protobuf::io::StringOutputStream stream(&out);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    m.SerializePartialToCodedStream(&coded);
  }
  return out;
}

void change_frame(Frame& frame, Random& random) {
  const auto message = message_of(frame.tag);
  if (!message || !message->ParseFromString(frame.bytes) || random.below(16) == 0)
    return change_bytes(frame.bytes);
  for (auto changes = 1 + random.below(3); changes > 0; --changes) change_message(*message, random);
  frame.bytes = bytes_of(*message);
}

void change_frames(std::vector<Frame>& frames, Random& random) {
  const auto kind = frames.empty() ? 0 : random.below(12);
  const size_t at = frames.empty() ? 0 : random.below(frames.size());
  const auto place = frames.begin() + static_cast<long>(random.below(frames.size() + 1));
  switch (kind) {
    case 0: {
      Frame added = {kFrameTags[random.below(kFrameTags.size())], {}};
      change_frame(added, random);
      frames.insert(place, std::move(added));
      return;
    }
    case 1:
      frames.erase(frames.begin() + static_cast<long>(at));
      return;
    case 2:
      frames.insert(place, Frame(frames[at]));
      return;
    case 3:
      std::swap(frames[at], frames[random.below(frames.size())]);
      return;
    case 4: {
      Frame copy = frames[at];
      change_frame(copy, random);
      frames.insert(place, std::move(copy));
      return;
    }
    default:
      change_frame(frames[at], random);
  }
}

std::string input_of(const std::vector<Frame>& frames) {
  std::string out;
  for (const auto& f : frames) {
    out += f.tag;
    out += static_cast<char>(f.bytes.size() >> 8);
    out += static_cast<char>(f.bytes.size() & 0xff);
    out += f.bytes;
  }
  return out;
}

size_t write(const std::vector<Frame>& frames, uint8_t* to, size_t max_size) {
  const auto too_long = [](const Frame& f) { return f.bytes.size() > kMostBytes; };
  if (frames.size() > kMostFrames || std::any_of(frames.begin(), frames.end(), too_long)) return 0;
  const auto input = input_of(frames);
  if (input.size() > max_size) return 0;
  std::memcpy(to, input.data(), input.size());
  return input.size();
}

}  // namespace

std::vector<Frame> frames_of(std::string_view input) {
  std::vector<Frame> frames;
  while (input.size() >= 3) {
    const size_t size =
        static_cast<size_t>(static_cast<uint8_t>(input[1])) << 8 | static_cast<uint8_t>(input[2]);
    if (input.size() < 3 + size) break;
    frames.push_back({input[0], std::string(input.substr(3, size))});
    input.remove_prefix(3 + size);
  }
  return frames;
}

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  google::protobuf::SetLogHandler(nullptr);  // it would write of each message that does not parse
  for (const auto& seed : seeds_of(*argc, *argv)) {
    for (const auto& frame : frames_of(seed)) {
      const auto message = message_of(frame.tag);
      if (message && message->ParseFromString(frame.bytes)) samples().learn(*message);
    }
  }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  Random random(seed);
  const auto frames = frames_of(view_of(data, size));
  if (random.below(16) == 0) return LLVMFuzzerMutate(data, size, max_size);
  for (int i = 0; i < kTries; ++i) {
    auto changed = frames;
    change_frames(changed, random);
    if (const size_t written = write(changed, data, max_size); written > 0) return written;
  }
  return LLVMFuzzerMutate(data, size, max_size);
}

// Some frames of the second go between those of the first.
extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* data1, size_t size1, const uint8_t* data2,
                                            size_t size2, uint8_t* out, size_t max_size, unsigned int seed) {
  Random random(seed);
  auto into = frames_of(view_of(data1, size1));
  const auto from = frames_of(view_of(data2, size2));
  if (from.empty()) return 0;
  const size_t begin = random.below(from.size());
  const size_t count = 1 + random.below(std::min<size_t>(from.size() - begin, 8));
  const auto first = from.begin() + static_cast<long>(begin);
  into.insert(into.begin() + static_cast<long>(random.below(into.size() + 1)), first,
              first + static_cast<long>(count));
  return write(into, out, max_size);
}
