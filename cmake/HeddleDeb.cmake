# `make deb`: the program and the libraries of wheels as one Debian package. Its dependencies are those of the program
# and of these libraries, as dpkg-shlibdeps finds them.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME heddle)
set(CPACK_PACKAGE_CONTACT "the Heddle authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "plans, runs and serves neural networks on unequal accelerators")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_COMPONENTS_ALL program wheels)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE zstd)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS
  ${CMAKE_BINARY_DIR}/lib ${HEDDLE_SITE_PACKAGES}/openvino/libs ${HEDDLE_SITE_PACKAGES}/ortools/.libs
  ${HEDDLE_SITE_PACKAGES}/ortools.libs)
include(CPack)
