// Pages in a real browser, without a window: what a person finds there at a width, light or dark. A test skips where no
// Chromium is installed (Debian: chromium-headless-shell or chromium; Ubuntu's is a snap, so no package list has it).
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace heddle {

// Debian's and Ubuntu's names; "" where there is none.
inline std::string find_browser() {
  for (const std::string name : {"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"})
    if (std::system(("command -v " + name + " > /dev/null 2>&1").c_str()) == 0) return name;
  return "";
}

struct PageWindow {
  int width = 1280;
  bool dark = false;
};
inline constexpr PageWindow kPageWindows[] = {{360, false}, {360, true},   {768, false},
                                              {768, true},  {1280, false}, {1280, true}};

// The page's elements after `page_ms` of its own time; "" if the browser does not start.
inline std::string page_in_browser(const std::string& browser, const std::string& address, PageWindow window,
                                   int page_ms) {
  std::string folder = (std::filesystem::temp_directory_path() / "heddle-browser-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return "";
  const std::string command =
      "timeout 100 " + browser +
      " --headless --no-sandbox --disable-gpu --blink-settings=preferredColorScheme=" +
      (window.dark ? "0" : "1") + " --window-size=" + std::to_string(window.width) +
      ",900 --virtual-time-budget=" + std::to_string(page_ms) + " --user-data-dir='" + folder +
      "' --dump-dom '" + address + "' 2>/dev/null";
  std::string text;
  if (FILE* const out = ::popen(command.c_str(), "r"); out != nullptr) {
    std::array<char, 4096> buffer;
    for (size_t n; (n = std::fread(buffer.data(), 1, buffer.size(), out)) > 0;) text.append(buffer.data(), n);
    ::pclose(out);
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return text;
}

// The page with a script before all others: it notes errors, and after `at_ms` runs `act` and writes down the page's
// sizes as attributes of the root element.
inline std::string with_probe(std::string page, int at_ms, const std::string& act = "") {
  const auto head = page.find("<head>");
  EXPECT_NE(head, std::string::npos);
  const std::string probe = R"html(<script>
addEventListener('error', e => { document.documentElement.dataset.error = e.message; });
addEventListener('load', () => setTimeout(() => {
  const root = document.documentElement, seen = root.dataset;
  )html" + act + R"html(
  seen.inner = innerWidth;
  seen.fits = root.scrollWidth <= innerWidth ? 'yes' : 'no, ' + root.scrollWidth;
  seen.dark = matchMedia('(prefers-color-scheme: dark)').matches;
}, )html" + std::to_string(at_ms) +
                            "));\n</script>";
  return page.insert(head + 6, probe);
}

// The value of the root element's data-NAME; "-" without.
inline std::string root_data(const std::string& page, const std::string& name) {
  const auto root = page.substr(page.find("<html"), page.find('>', page.find("<html")) - page.find("<html"));
  const auto at = root.find("data-" + name + "=\"");
  if (at == std::string::npos) return "-";
  const auto from = at + name.size() + 7;
  return root.substr(from, root.find('"', from) - from);
}

// What holds for every page: no script fails, nothing needs scrolling sideways, and the colours are those asked for.
// False: this browser has no window that narrow.
inline bool check_page(const std::string& page, PageWindow window) {
  SCOPED_TRACE(std::to_string(window.width) + (window.dark ? " dark" : " light"));
  EXPECT_EQ(root_data(page, "error"), "-");
  const auto inner = root_data(page, "inner");
  if (std::atoi(inner.c_str()) > window.width) return false;
  EXPECT_EQ(inner, std::to_string(window.width));
  EXPECT_EQ(root_data(page, "fits"), "yes");
  EXPECT_EQ(root_data(page, "dark"), window.dark ? "true" : "false");
  return true;
}

}  // namespace heddle
