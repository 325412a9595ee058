/* fault.h - named places where a crash test makes the process die.
 *
 * FAULT("writer.commit") does nothing in a release.  In builds with YARD_FAULTS, the
 * environment YARD_FAULT="writer.commit:3" kills the process (SIGKILL, nothing is cleaned up)
 * at the third pass.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_FAULT_H
#define BASE_FAULT_H

#ifdef YARD_FAULTS
void fault_pass(const char *name);
#define FAULT(name) fault_pass(name)
#else
#define FAULT(name) ((void)0)
#endif

#endif
