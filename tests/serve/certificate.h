// A self-signed certificate of the test's own.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "heddle/serve/tls.h"

namespace heddle {

// A fresh certificate for 127.0.0.1 and localhost, made by the openssl tool.
class Certificate {
 public:
  Certificate() {
    std::string pattern = (std::filesystem::temp_directory_path() / "heddle-tls-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    const auto command =
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
        "-subj /CN=heddle -addext subjectAltName=IP:127.0.0.1,DNS:localhost -keyout " +
        key() + " -out " + file() + " 2>/dev/null";
    made_ = std::system(command.c_str()) == 0;
  }
  ~Certificate() { std::filesystem::remove_all(folder_); }
  bool made() const { return made_; }
  std::string file() const { return folder_ + "/cert.pem"; }
  std::string key() const { return folder_ + "/key.pem"; }
  std::shared_ptr<const TlsContext> server() const {
    return *TlsContext::server(*read_tls_identity(file(), key()));
  }

 private:
  std::string folder_;
  bool made_ = false;
};

}  // namespace heddle
