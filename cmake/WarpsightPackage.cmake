# cmake --install, and cpack for a .deb that starts from the menu.
include(GNUInstallDirs)
if(WARPSIGHT_HAVE_APP)
  install(TARGETS warpsight-window)
  install(FILES ${PROJECT_SOURCE_DIR}/resources/warpsight.desktop DESTINATION ${CMAKE_INSTALL_DATADIR}/applications)
  install(FILES ${PROJECT_SOURCE_DIR}/resources/icons/warpsight.svg
    DESTINATION ${CMAKE_INSTALL_DATADIR}/icons/hicolor/scalable/apps)
  install(FILES ${PROJECT_SOURCE_DIR}/resources/warpsight-mime.xml
    DESTINATION ${CMAKE_INSTALL_DATADIR}/mime/packages RENAME warpsight.xml)
endif()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/warpsight RENAME copyright)
install(FILES ${PROJECT_SOURCE_DIR}/README.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/warpsight)
# What shows a reader of the package where its data sets come from travels with them (datasets/*/ORIGIN.md).

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME warpsight)
set(CPACK_PACKAGE_VENDOR "Warpsight")
set(CPACK_PACKAGE_CONTACT "Warpsight developers <warpsight@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Train small networks on a GPU and see what each choice costs")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# The svg plugin draws the icons; the fonts are those that the window is laid out with.
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libqt6svg6, qt6-qpa-plugins")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "fonts-inter, fonts-jetbrains-mono, fonts-dejavu-core, qt6-wayland")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "The loss curve, the kernel timeline, the memory in use and the calls to the
allocator of a training run, live and side by side.")
if(WARPSIGHT_HAVE_CUDA)
  # No Debian package holds these libraries; NVIDIA's own packages are named by version.
  string(REPLACE "." "-" _cuda "${CUDAToolkit_VERSION_MAJOR}.${CUDAToolkit_VERSION_MINOR}")
  string(APPEND CPACK_DEBIAN_PACKAGE_RECOMMENDS
    ", cuda-cudart-${_cuda}, cuda-nvrtc-${_cuda}, cuda-cupti-${_cuda}, libcublas-${_cuda}")
  string(APPEND CPACK_DEBIAN_PACKAGE_DESCRIPTION "
.
Built with CUDA ${CUDAToolkit_VERSION_MAJOR}.${CUDAToolkit_VERSION_MINOR}: its runtime, cuBLASLt, NVRTC and CUPTI must be
installed, from NVIDIA's packages or its toolkit. A GPU is not needed to start.")
endif()
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_STRIP_FILES ON)
include(CPack)
