/* SPDX-License-Identifier: MIT */
#ifndef INHERITED_H
#define INHERITED_H

/* Gives up what this process has inherited from the process that has started it. A private agent
 * serves all processes of its user, but one of them starts it, perhaps with special settings. The
 * settings that are reset are: the CPUs to which it is pinned, memory policy, huge pages,
 * scheduling, priority, timer slack, stack size, resource limits (soft limits are raised to the
 * hard limits), its order when memory runs out, umask and folder. A setting that the system does
 * not allow to change stays, and a line in the log names it. To be called while there is only one
 * thread. */
void inherited_shed(void);

#endif
