/* SPDX-License-Identifier: MIT */
#ifndef INHERITED_H
#define INHERITED_H

/*
 * A private agent is started by some process of its user, and serves all of them. This gives back
 * what the first one had for itself: the processors that it was pinned to, its memory policy, huge
 * pages, scheduling, priority, timer slack, size of stacks, resource limits (the soft ones are
 * raised to the hard ones), place in line when memory runs out, umask and folder. What the system
 * does not allow stays as it is, and a line of the log names it. By the only thread.
 */
void inherited_shed(void);

#endif
