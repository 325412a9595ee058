# Write OUT: the files of FILES (NNN_name.sql, in order) as a table of struct db_migration called NAME.

set(rows "")
set(count 0)
foreach(file ${FILES})
    get_filename_component(stem ${file} NAME_WE)
    if(NOT stem MATCHES "^([0-9][0-9][0-9])_(.+)$")
        message(FATAL_ERROR "${file}: a schema file is called NNN_name.sql")
    endif()
    math(EXPR count "${count} + 1")
    math(EXPR number "1${CMAKE_MATCH_1} - 1000")
    if(NOT number EQUAL count)
        message(FATAL_ERROR "${file}: expected number ${count}")
    endif()
    set(name ${CMAKE_MATCH_2})
    file(READ ${file} sql)
    string(REPLACE "\\" "\\\\" sql "${sql}")
    string(REPLACE "\"" "\\\"" sql "${sql}")
    string(REPLACE "\n" "\\n\"\n     \"" sql "${sql}")
    string(APPEND rows "    {${number}, \"${name}\",\n     \"${sql}\"},\n")
endforeach()
file(WRITE ${OUT} "/* Generated from the numbered schema files. */
#include \"store/store-internal.h\"

const struct db_migration ${NAME}[] = {
${rows}};
const size_t ${NAME}_count = ${count};
")
