/* Only in builds with a sanitizer: a shim ends by looking for leaks in a process that traces
 * it, and its own signals would wait for that.  SPDX-License-Identifier: Apache-2.0 */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}
