# How every file of ours is compiled: warnings are errors with both compilers, binaries are hardened.

add_compile_definitions(_GNU_SOURCE YARD_VERSION="${PROJECT_VERSION}")
add_compile_options(
    -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
    -Wwrite-strings -Wformat=2 -Wundef -Wimplicit-fallthrough -Wswitch-enum -Werror
    -fno-omit-frame-pointer -fstack-protector-strong -fPIE)
if(CMAKE_C_COMPILER_ID STREQUAL GNU)
    # snprintf into an error message is meant to cut what is too long.
    add_compile_options(-Wno-format-truncation)
endif()
add_link_options($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-pie> -Wl,-z,relro,-z,now,-z,noexecstack -Wl,--as-needed)

if(YARD_FAULTS)
    add_compile_definitions(YARD_FAULTS=1)
endif()

if(YARD_SANITIZE)
    add_compile_options(-fsanitize=${YARD_SANITIZE} -fno-sanitize-recover=all)
    add_link_options(-fsanitize=${YARD_SANITIZE})
else()
    add_compile_options($<$<CONFIG:RelWithDebInfo>:-D_FORTIFY_SOURCE=2>
                        -fstack-clash-protection)
endif()
if(YARD_FUZZ) # coverage for libFuzzer in every layer; test/fuzz links the rest
    add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# Files whose loops are compiled for several machines (train/num/clones.h).  Debug is for looking.
include(CheckCSourceCompiles)
check_c_source_compiles("
    __attribute__((target_clones(\"arch=x86-64-v4\", \"arch=x86-64-v3\", \"default\")))
    static int next(int x) { return x + 1; }
    int main(int argc, char **argv) { (void)argv; return next(argc); }" YARD_HAS_CLONES)
function(yard_clones)
    if(YARD_HAS_CLONES AND NOT YARD_SANITIZE AND NOT YARD_FUZZ AND NOT CMAKE_BUILD_TYPE STREQUAL Debug)
        set_source_files_properties(${ARGN} PROPERTIES COMPILE_DEFINITIONS YARD_CLONES)
    endif()
endfunction()
