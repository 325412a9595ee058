# Third-party parts, all from Debian packages (scripts/install-deps).

find_package(Threads REQUIRED)
include(cmake/train-deps.cmake)
if(YARD_ONLY_TRAIN)
    return()
endif()

find_package(PkgConfig REQUIRED)
pkg_check_modules(jansson REQUIRED IMPORTED_TARGET jansson>=2.11) # counts that threads share
pkg_check_modules(openssl REQUIRED IMPORTED_TARGET openssl)
pkg_check_modules(sqlite3 REQUIRED IMPORTED_TARGET sqlite3)
pkg_check_modules(yaml REQUIRED IMPORTED_TARGET yaml-0.1)
pkg_check_modules(curl REQUIRED IMPORTED_TARGET libcurl)
pkg_check_modules(expat REQUIRED IMPORTED_TARGET expat)
pkg_check_modules(fuse3 REQUIRED IMPORTED_TARGET fuse3)

# Debian ships llhttp as sources: compile them here, with their own warnings left to their authors.
set(LLHTTP_SOURCES /usr/share/llhttp)
set(LLHTTP_INCLUDE /usr/share/include/llhttp)
if(NOT EXISTS ${LLHTTP_SOURCES}/llhttp.c)
    message(FATAL_ERROR "llhttp is missing: run scripts/install-deps (package node-llhttp)")
endif()
add_library(llhttp STATIC
    ${LLHTTP_SOURCES}/llhttp.c ${LLHTTP_SOURCES}/api.c ${LLHTTP_SOURCES}/http.c)
target_include_directories(llhttp SYSTEM PUBLIC ${LLHTTP_INCLUDE})
target_compile_options(llhttp PRIVATE -w)
target_compile_definitions(llhttp PUBLIC LLHTTP_STRICT_MODE=1)
