// Prometheus's text format 0.0.4.
#pragma once

#include <fmt/format.h>

#include <string>

namespace heddle {

inline std::string metric_label(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    out += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return out;
}

class Metrics {
 public:
  void family(const char* name, const char* type, const char* help) {
    text_ += std::string("# HELP ") + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
  }
  void value(const std::string& name, const std::string& labels, double value) {
    text_ += name + (labels.empty() ? "" : "{" + labels + "}") + fmt::format(" {:.17g}\n", value);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

inline std::string model_label(const std::string& model) { return "model=\"" + metric_label(model) + "\""; }

}  // namespace heddle
