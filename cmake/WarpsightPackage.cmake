# cmake --install. cmake/deb, cmake/folder and cmake/wheel pack what it gives.
include(GNUInstallDirs)
if(WARPSIGHT_HAVE_APP)
  install(TARGETS warpsight-window RUNTIME OPTIONAL)  # the wheel is packed from a build without it
  install(FILES ${PROJECT_SOURCE_DIR}/resources/warpsight.desktop DESTINATION ${CMAKE_INSTALL_DATADIR}/applications)
  install(FILES ${PROJECT_SOURCE_DIR}/resources/icons/warpsight.svg
    DESTINATION ${CMAKE_INSTALL_DATADIR}/icons/hicolor/scalable/apps)
  install(FILES ${PROJECT_SOURCE_DIR}/resources/warpsight-mime.xml
    DESTINATION ${CMAKE_INSTALL_DATADIR}/mime/packages RENAME warpsight.xml)
endif()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/warpsight RENAME copyright)
install(FILES ${PROJECT_SOURCE_DIR}/README.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/warpsight)
# What shows a reader of the package where its data sets come from travels with them (datasets/*/ORIGIN.md).
