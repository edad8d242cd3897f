# Installed programs and libraries find the libraries of wheels beside themselves. Included before any target is made.
# In a prefix the program is bin/heddle, and lib/heddle has the libraries. In site-packages everything is below heddle/,
# and the wheels lie around it.
set(CMAKE_INSTALL_RPATH
  "$ORIGIN/../lib/heddle" "$ORIGIN/../lib/heddle/openvino/libs"
  "$ORIGIN" "$ORIGIN/.." "$ORIGIN/../openvino/libs" "$ORIGIN/../../openvino/libs")
