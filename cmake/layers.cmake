# A folder of src/ is a layer: one static library that sees the headers of the layers it names and of
# no other.  Headers are included as "layer/file.h"; the path to find them is a folder of symbolic
# links with that one layer in it, handed only to those who may use it.  So a wrong #include does
# not compile.  test/build/layering.py proves it.
#
# A large layer is cut into parts that are layers themselves: "train/graph" is the folder
# src/train/graph, the target train-graph, and its headers are "train/graph/file.h".

set(YARD_LAYERS "" CACHE INTERNAL "every layer, for the layering test")

function(yard_layer_target layer ret_target)
    string(REPLACE "/" "-" target ${layer})
    set(${ret_target} ${target} PARENT_SCOPE)
endfunction()

function(yard_layer_dir layer ret_dir)
    yard_layer_target(${layer} target)
    set(${ret_dir} ${CMAKE_BINARY_DIR}/include/${target} PARENT_SCOPE)
endfunction()

# A part's headers are linked one by one, since its folder may hold other parts.
function(yard_layer_link name)
    yard_layer_dir(${name} dir)
    if(NOT name MATCHES "/")
        file(MAKE_DIRECTORY ${dir})
        file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${dir}/${name} SYMBOLIC)
        return()
    endif()
    file(MAKE_DIRECTORY ${dir}/${name})
    file(GLOB headers CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} *.h)
    foreach(header ${headers})
        file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR}/${header} ${dir}/${name}/${header} SYMBOLIC)
    endforeach()
endfunction()

# yard_layer(name USES layer... LIBS third-party... FOLDERS folder... SOURCES file...)
#
# FOLDERS sorts one layer's files ("engine/local/task.h") without making layers of them.
function(yard_layer name)
    cmake_parse_arguments(L "" "" "USES;LIBS;FOLDERS;SOURCES" ${ARGN})
    yard_layer_link(${name})
    yard_layer_target(${name} target)
    list(TRANSFORM L_USES REPLACE "/" "-" OUTPUT_VARIABLE used)

    if(L_SOURCES)
        add_library(${target} STATIC ${L_SOURCES})
        yard_see(${target} ${name} ${L_USES})
        target_link_libraries(${target} PUBLIC ${used} ${L_LIBS})
        target_compile_options(${target} PRIVATE
            "SHELL:-include ${PROJECT_SOURCE_DIR}/src/base/banned.h")
    else() # headers alone
        add_library(${target} INTERFACE)
        target_link_libraries(${target} INTERFACE ${used} ${L_LIBS})
    endif()
    set(YARD_LAYERS "${YARD_LAYERS};${name}" CACHE INTERNAL "")
    set(YARD_USES_${name} "${L_USES}" CACHE INTERNAL "")
    set(YARD_FOLDERS_${name} "${L_FOLDERS}" CACHE INTERNAL "")
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
    list(TRANSFORM YARD_FOLDERS_${name} APPEND /*.h OUTPUT_VARIABLE inner)
    file(GLOB headers CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} *.h ${inner})
    list(FILTER headers EXCLUDE REGEX "^banned.h$")
    if(YARD_ONLY_TRAIN AND name STREQUAL base)
        list(FILTER headers EXCLUDE REGEX "^json.h$") # needs Jansson
    endif()
    set(stubs "")
    foreach(header ${headers})
        set(stub ${CMAKE_CURRENT_BINARY_DIR}/alone/${header}.c)
        file(CONFIGURE OUTPUT ${stub} CONTENT
            "#include \"${name}/${header}\"\n#include \"${name}/${header}\"\ntypedef int alone;\n")
        list(APPEND stubs ${stub})
    endforeach()
    yard_layer_target(${name} target)
    if(stubs)
        add_library(${target}-headers OBJECT ${stubs})
        yard_see(${target}-headers ${name} ${ARGN})
    endif()
endfunction()

# A unit test of a layer: src/x/test/y.c becomes the CTest "x/y", src/x/z/test/y.c "x/z/y".
function(yard_unit_tests layer)
    cmake_parse_arguments(T "" "" "LIBS;SEES" ${ARGN})
    if(YARD_ONLY_TRAIN AND NOT YARD_CMOCKA)
        return()
    endif()
    yard_layer_target(${layer} library)
    list(TRANSFORM T_SEES REPLACE "/" "-" OUTPUT_VARIABLE seen)
    list(TRANSFORM YARD_FOLDERS_${layer} APPEND /test/*.c OUTPUT_VARIABLE inner)
    file(GLOB sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} test/*.c ${inner})
    foreach(source ${sources})
        string(REGEX REPLACE "(^|/)test/(.*)\\.c$" "\\1\\2" stem ${source})
        string(REPLACE "/" "-" target test-${library}-${stem})
        add_executable(${target} ${source})
        yard_see(${target} ${layer} ${YARD_USES_${layer}} ${T_SEES})
        target_link_libraries(${target} PRIVATE ${library} ${T_LIBS} ${seen} cmocka)
        set_target_properties(${target} PROPERTIES
            RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test)
        add_test(NAME ${layer}/${stem} COMMAND ${target})
        set_tests_properties(${layer}/${stem} PROPERTIES LABELS unit TIMEOUT 400)
    endforeach()
endfunction()
