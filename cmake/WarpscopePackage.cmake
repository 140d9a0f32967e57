# cmake --install, and cpack for a .deb that starts from the menu.
include(GNUInstallDirs)
if(WARPSCOPE_HAVE_APP)
  install(TARGETS warpscope)
  install(FILES ${PROJECT_SOURCE_DIR}/resources/warpscope.desktop DESTINATION ${CMAKE_INSTALL_DATADIR}/applications)
  install(FILES ${PROJECT_SOURCE_DIR}/resources/icons/warpscope.svg
    DESTINATION ${CMAKE_INSTALL_DATADIR}/icons/hicolor/scalable/apps)
  install(FILES ${PROJECT_SOURCE_DIR}/resources/warpscope-mime.xml
    DESTINATION ${CMAKE_INSTALL_DATADIR}/mime/packages RENAME warpscope.xml)
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME warpscope)
set(CPACK_PACKAGE_VENDOR "Warpscope")
set(CPACK_PACKAGE_CONTACT "Warpscope developers <warpscope@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Train small networks on a GPU and see what each choice costs")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# The svg plugin draws the icons; the fonts are those that the window is laid out with.
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libqt6svg6, qt6-qpa-plugins")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "fonts-inter, fonts-jetbrains-mono, fonts-dejavu-core")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_STRIP_FILES ON)
include(CPack)
