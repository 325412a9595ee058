# SPDX-License-Identifier: Apache-2.0
#
# The JMESPath specification's own cases against our implementation.  Skipped without the npm package
# that carries them (package.json).

if(TARGET cli)
    add_executable(jmespath-compliance ${CMAKE_CURRENT_LIST_DIR}/jmespath_compliance.c)
    yard_see(jmespath-compliance cli base)
    target_link_libraries(jmespath-compliance PRIVATE cli)
    set_target_properties(jmespath-compliance PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test)
    yard_test(build/jmespath_compliance build ${CMAKE_CURRENT_LIST_DIR}/jmespath_compliance.sh
        $<TARGET_FILE:jmespath-compliance> ${PROJECT_SOURCE_DIR}/node_modules)
endif()
