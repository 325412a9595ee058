# What the trainer stands on.  In the whole build all of it must be there (scripts/install-deps brings
# it).  A build of the trainer alone, on a machine with other wares, takes what it finds: what is
# missing is a backend, a way to launch ranks or a kind of picture less, and `yardbench --version`
# says which.

if(YARD_ONLY_TRAIN)
    set(must "")
else()
    set(must REQUIRED)
endif()

find_package(OpenMP QUIET COMPONENTS C) # clang may have none: loops then run on one thread
find_package(MPI ${must} COMPONENTS C)
find_package(JPEG ${must})

# Debian's libdnnl-dev has no CMake package of its own.
find_path(ONEDNN_INCLUDE dnnl.h)
find_library(ONEDNN_LIBRARY dnnl)
if(ONEDNN_INCLUDE AND ONEDNN_LIBRARY)
    add_library(onednn SHARED IMPORTED)
    set_target_properties(onednn PROPERTIES
        IMPORTED_LOCATION ${ONEDNN_LIBRARY}
        INTERFACE_INCLUDE_DIRECTORIES ${ONEDNN_INCLUDE})
elseif(must)
    message(FATAL_ERROR "oneDNN is missing: run scripts/install-deps (package libdnnl-dev)")
endif()

find_library(YARD_CMOCKA cmocka)
