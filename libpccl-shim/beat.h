/* SPDX-License-Identifier: MIT
 *
 * The thread that answers beats: the agent asks whether this process runs. The thread takes no lock
 * and waits for nothing else, so no call of the application can delay the answer.
 */
#ifndef PCCL_SHIM_BEAT_H
#define PCCL_SHIM_BEAT_H

/* Starts the thread. Takes the socket that came with the answer to the hello. The thread ends when
 * the agent closes the socket. If no thread can be started, the socket is closed, and the agent
 * works without beats. Any thread. */
void pccl_beat_start(int fd);

#endif
