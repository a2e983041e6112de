/* SPDX-License-Identifier: MIT
 *
 * The thread that answers the agent's asks whether this process runs. It takes no lock and waits
 * for nothing else, so no call of the application keeps it from answering.
 */
#ifndef PCCL_SHIM_BEAT_H
#define PCCL_SHIM_BEAT_H

/* Takes the socket that came with the hello's answer. The thread ends when the agent closes it. If
 * no thread can be started the socket is closed, and the agent does without. Any thread. */
void pccl_beat_start(int fd);

#endif
