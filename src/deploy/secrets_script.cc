#include <algorithm>

#include "commands.h"

namespace heddle {

std::string shell_word(std::string_view word) {
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("-_./:=,+@%").find(c) != std::string_view::npos;
  };
  return expanded_word(
      word,
      [&is_plain](const std::string& text) {
        if (std::all_of(text.begin(), text.end(), is_plain)) return text;
        return "'" + replaced_all(text, "'", "'\\''") + "'";
      },
      [](const std::string& text) { return "\"" + text + "\""; });
}

std::string shell_command(const std::vector<std::string>& words) { return command_lines(words, shell_word); }

std::string command_lines(const std::vector<std::string>& words,
                          std::string (*written)(std::string_view word)) {
  constexpr size_t kLineBytes = 100;
  std::string out;
  size_t line = 0;
  for (const auto& w : words) {
    const auto word = written(w);
    if (line > 0 && line + word.size() > kLineBytes) {
      out += " \\\n  ";
      line = 2;
    } else if (line > 0) {
      out += ' ';
    }
    out += word;
    line += word.size() + 1;
  }
  return out;
}

std::string secrets_script(const Workloads& workloads, const std::vector<std::string>& names) {
  std::string out =
      "#!/bin/sh\n"
      "# Makes the deployment's secrets in secrets/ beside this script; those that are there stay. "
      "Arguments: more\n"
      "# host names and addresses for the certificate. To replace one, remove its file and run the script "
      "again.\n"
      "set -eu\n"
      "cd \"$(dirname \"$0\")\"\n"
      "umask 077\n"
      "mkdir -p secrets\n";
  if (workloads.settings.tokens)
    for (const char* token : {kClientToken, kWorkerToken})
      if (workloads.is_fleet || token == kClientToken)
        out += std::string("[ -s secrets/") + token + " ] || openssl rand -hex 32 >secrets/" + token + "\n";
  if (!has_tls(workloads)) return out;
  out += "names='DNS:localhost,IP:127.0.0.1";
  for (const auto& name : names) out += ",DNS:" + name;
  out +=
      "'\n"
      "for name in \"$@\"; do\n"
      "  case $name in\n"
      "    *[!0-9.]*) names=$names,DNS:$name ;;\n"
      "    *) names=$names,IP:$name ;;\n"
      "  esac\n"
      "done\n"
      "if [ ! -s secrets/ca.crt ]; then\n"
      "  openssl req -x509 -newkey rsa:2048 -nodes -days 3650 -subj '/CN=" +
      workloads.name +
      " authority' \\\n"
      "    -keyout secrets/ca.key -out secrets/ca.crt 2>secrets/openssl.log\n"
      "fi\n"
      "if [ ! -s secrets/tls.crt ]; then\n"
      "  openssl req -newkey rsa:2048 -nodes -subj '/CN=" +
      workloads.name +
      "' -keyout secrets/tls.key -out secrets/tls.csr \\\n"
      "    2>>secrets/openssl.log\n"
      "  printf 'subjectAltName=%s\\n' \"$names\" >secrets/names\n"
      "  openssl x509 -req -in secrets/tls.csr -CA secrets/ca.crt -CAkey secrets/ca.key -CAcreateserial "
      "-days 825 \\\n"
      "    -extfile secrets/names -out secrets/tls.crt 2>>secrets/openssl.log\n"
      "  rm -f secrets/tls.csr secrets/names\n"
      "fi\n";
  return out;
}

}  // namespace heddle
