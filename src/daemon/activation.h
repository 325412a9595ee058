/* activation.h - sockets that systemd opened for us.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_ACTIVATION_H
#define DAEMON_ACTIVATION_H

/* The passed socket of that name (FileDescriptorName=), or -1.  Each is handed out once. */
int activation_take(const char *name);

#endif
