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

# CUDA: nvcc, cuDNN and cuBLASLt from one toolkit; its runtime is linked in, NCCL is looked for when
# there are several ranks.  Never required.  Kernels are not for the sanitizers.
if(NOT YARD_SANITIZE AND NOT YARD_FUZZ)
    find_program(YARD_NVCC nvcc HINTS ENV CUDA_HOME PATH_SUFFIXES bin PATHS /usr/local/cuda)
endif()
if(YARD_NVCC)
    get_filename_component(cuda_home ${YARD_NVCC}/../.. REALPATH)
    find_path(YARD_CUDA_INCLUDE cuda_runtime_api.h HINTS ${cuda_home}/include)
    find_path(YARD_CUDNN_INCLUDE cudnn.h HINTS ${cuda_home}/include)
    find_path(YARD_NCCL_INCLUDE nccl.h HINTS ${cuda_home}/include)
    foreach(library cudart_static cublasLt cudnn)
        find_library(YARD_CUDA_${library} ${library} HINTS ${cuda_home}/lib64)
    endforeach()
    if(YARD_CUDA_INCLUDE AND YARD_CUDNN_INCLUDE AND YARD_NCCL_INCLUDE AND
       YARD_CUDA_cudart_static AND YARD_CUDA_cublasLt AND YARD_CUDA_cudnn)
        add_library(cuda-toolkit INTERFACE)
        target_include_directories(cuda-toolkit SYSTEM INTERFACE
            ${YARD_CUDA_INCLUDE} ${YARD_CUDNN_INCLUDE} ${YARD_NCCL_INCLUDE})
        target_link_libraries(cuda-toolkit INTERFACE ${YARD_CUDA_cudnn} ${YARD_CUDA_cublasLt}
            ${YARD_CUDA_cudart_static} stdc++ Threads::Threads ${CMAKE_DL_LIBS} rt)
    else()
        message(STATUS "nvcc is here, but not cuDNN, cuBLASLt and nccl.h: no CUDA backend")
    endif()
endif()
