/* SPDX-License-Identifier: MIT */
#ifndef INHERITED_H
#define INHERITED_H

/* Resets the settings that this process has inherited from the process that started it. A private
 * agent serves all processes of its user, but one of them starts it, perhaps with special settings.
 * The settings are: the CPUs to which it is pinned, memory policy, huge pages, scheduling,
 * priority, timer slack, stack size, resource limits (soft limits are raised to the hard limits),
 * umask, folder, and how early it is killed when memory runs out. If the system does not allow a
 * change, the setting stays, and a line in the log names it. To be called while there is only one
 * thread. */
void inherited_shed(void);

#endif
