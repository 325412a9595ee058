# A folder of src/ is a layer: one static library that sees the headers of the layers it names and of
# no other.  Headers are included as "layer/file.h"; the path to find them is a folder of symbolic
# links with that one layer in it, handed only to those who may use it.  So a wrong #include does
# not compile.  test/build/layering.py proves it.

set(YARD_LAYERS "" CACHE INTERNAL "every layer, for the layering test")

function(yard_layer_dir layer ret_dir)
    set(${ret_dir} ${CMAKE_BINARY_DIR}/include/${layer} PARENT_SCOPE)
endfunction()

# yard_layer(name USES layer... LIBS third-party... SOURCES file...)
function(yard_layer name)
    cmake_parse_arguments(L "" "" "USES;LIBS;SOURCES" ${ARGN})
    yard_layer_dir(${name} dir)
    file(MAKE_DIRECTORY ${dir})
    file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${dir}/${name} SYMBOLIC)

    add_library(${name} STATIC ${L_SOURCES})
    yard_see(${name} ${name} ${L_USES})
    target_link_libraries(${name} PUBLIC ${L_USES} ${L_LIBS})
    target_compile_options(${name} PRIVATE
        "SHELL:-include ${PROJECT_SOURCE_DIR}/src/base/banned.h")
    set(YARD_LAYERS "${YARD_LAYERS};${name}" CACHE INTERNAL "")
    set(YARD_USES_${name} "${L_USES}" CACHE INTERNAL "")
    yard_headers_alone(${name} ${L_USES})
endfunction()

# Let a target include the headers of the named layers.
function(yard_see target)
    foreach(layer ${ARGN})
        yard_layer_dir(${layer} dir)
        target_include_directories(${target} PRIVATE ${dir})
    endforeach()
endfunction()

# Each header must compile alone, twice over: a generated source per header, built with the layer.
function(yard_headers_alone name)
    file(GLOB headers CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} *.h)
    list(FILTER headers EXCLUDE REGEX "^banned.h$")
    set(stubs "")
    foreach(header ${headers})
        set(stub ${CMAKE_CURRENT_BINARY_DIR}/alone/${header}.c)
        file(CONFIGURE OUTPUT ${stub} CONTENT
            "#include \"${name}/${header}\"\n#include \"${name}/${header}\"\ntypedef int alone;\n")
        list(APPEND stubs ${stub})
    endforeach()
    if(stubs)
        add_library(${name}-headers OBJECT ${stubs})
        yard_see(${name}-headers ${name} ${ARGN})
    endif()
endfunction()

# A unit test of a layer: src/x/test/y.c becomes the CTest "x/y".
function(yard_unit_tests layer)
    cmake_parse_arguments(T "" "" "LIBS;SEES" ${ARGN})
    file(GLOB sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} test/*.c)
    foreach(source ${sources})
        get_filename_component(stem ${source} NAME_WE)
        set(target test-${layer}-${stem})
        add_executable(${target} ${source})
        yard_see(${target} ${layer} ${YARD_USES_${layer}} ${T_SEES})
        target_link_libraries(${target} PRIVATE ${layer} ${T_LIBS} ${T_SEES} cmocka)
        set_target_properties(${target} PROPERTIES
            RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test)
        add_test(NAME ${layer}/${stem} COMMAND ${target})
        set_tests_properties(${layer}/${stem} PROPERTIES LABELS unit TIMEOUT 120)
    endforeach()
endfunction()
