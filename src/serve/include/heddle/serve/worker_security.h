// Tokens and certificates that a server and its workers show each other, and those that they trust.
#pragma once

#include <string>

#include "heddle/serve/tls.h"

namespace heddle {

// The same rules on every connection between them: announcements, sessions and feature maps. Without anything
// no token is required, and nothing is encrypted.
struct WorkerSecurity {
  TlsIdentity tls;      // what is shown where others connect; with it all connections are encrypted
  std::string trusted;  // PEM certificates that others' must be signed by; needed with `tls`
  std::string token;    // shown to and demanded of everybody; empty: none

  bool encrypts() const { return !tls.key.empty(); }
};

// From files; an empty name stands for none. Without `trusted_file` the own certificates are trusted: one
// certificate for all. Errors: a file that cannot be read or is no certificate or key, a certificate without
// its key, a token of fewer than 8 characters, trust without a certificate to show.
Result<WorkerSecurity> read_worker_security(const std::string& certificate_file, const std::string& key_file,
                                            const std::string& trusted_file, const std::string& token_file);

// A secret from a file, without the white space at its end. Errors: fewer than `least` characters, by default
// what a server asks of its own token.
Result<std::string> read_token(const std::string& file, size_t least = 8);

}  // namespace heddle
