/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of the shared-state engine:
 *
 *   state.c   the loop's side, and the thread's round
 *   job.c     what a job knows: hashes, leaves, and when it is over
 *   member.c  its members
 *   window.c  commands to processes
 *   copy.c    blocks on their way into tensors; copies from holders on this host
 *   pool.c    threads that copy
 *   fetch.c   sources: what is asked of whom, and who is given up
 *   pace.c    how much is asked for ahead
 *   stream.c  streams to sources: connecting, requests, answers
 *   serve.c   streams from other agents
 *
 * Everything belongs to the thread, but for what is marked L (loop) and for atomic counters, which
 * the loop reads.
 */
#ifndef STATE_INTERNAL_H
#define STATE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "pcclagentd/base/worker.h"
#include "pcclagentd/state/state.h"
#include "pcclagentd/state/set.h"
#include "proto/wire_link.h"
#include "proto/wire_state.h"

_Static_assert(WST_MEMBER_MAX == 64, "see ste_set_number");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "hashes are sent as they lie in memory");

#define STE_MS(n) ((uint64_t)(n)*1000000u)

#define STE_BLOCKS      64u /* of one job, on their way into tensors */
#define STE_STREAMS_MAX 16u /* of one job */
#define STE_ASKS        64u /* requests of one stream without an answer */
#define STE_SLOT_LEAVES (SHM_STATE_SLOT / WIRE_LEAF)
#define STE_SERVE_SLOTS 4u /* of a receiver's window that serving may hold */
#define STE_READ_SLOTS  8u /* of a holder's window that local copies may hold */

struct ste_job;
struct ste_conn;
struct ste_stream;

/* ---- windows ---- */

enum ste_use { STE_USE_FREE = 0, STE_USE_BLOCK, STE_USE_SERVE };

struct ste_window {
	uint32_t given, seen; /* commands given; acknowledgements read */
	uint32_t n[3];        /* slots by use */
	uint64_t since_ns;    /* of the oldest moment from which nothing was acknowledged */
	struct {
		uint8_t use;    /* enum ste_use */
		bool commanded; /* not acknowledged yet */
		uint8_t op;     /* enum shm_state_op */
		bool foreign;   /* from another member's memory */
		void *owner;    /* struct ste_block or ste_conn; NULL: nobody waits for it */
	} slot[SHM_STATE_SLOTS];
};

/* Of a receiver's tensor, see ste_diff. */
struct ste_diffs {
	_Atomic bool differs;
	_Atomic uint64_t leaves, of, bytes, done;
};

/* A member, as the thread sees it. */
struct ste_peer {
	struct ste_member m;
	uint32_t index;
	bool alike;                 /* has the job's table of tensors */
	struct ste_region *regions; /* sorted by id; owned */
	uint8_t **mem;              /* of each tensor; NULL: by commands; owned */
	bool windowed;              /* some tensor is reached by commands */
	struct ste_set blind;       /* whose memory its process could not map */
	uint8_t *lacks;             /* receivers: a bit for each leaf; owned */
	uint64_t lacking;           /* bytes, of leaves that are known to differ */
	bool touched;               /* its memory was written to */
	struct ste_diffs *diffs;    /* receivers: of each tensor; owned */
	struct ste_window w;
	_Atomic uint64_t tx_bytes, rx_bytes;
	_Atomic uint64_t total; /* bytes that were lacking once */
	_Atomic bool complete, failed, dropped;
	char text[STE_TEXT_MAX]; /* before failed */
	struct ste_job *j;
};

/* ---- blocks ---- */

enum ste_block_state {
	STE_BLOCK_FREE = 0,
	STE_BLOCK_LANDING,
	STE_BLOCK_READING,
	STE_BLOCK_SPREADS
};

/* Consecutive leaves of a tensor that the same receivers lack. */
struct ste_block {
	uint8_t state; /* enum ste_block_state */
	bool bad;      /* what was not written yet is not to be */
	uint32_t tensor, n;
	uint64_t first;      /* leaf of the tensor */
	uint64_t off;        /* bytes, in the tensor */
	uint32_t len;        /* bytes */
	uint32_t writes;     /* commands not acknowledged, and copies under way */
	struct ste_set todo; /* members to be given it */
	uint8_t *data;
	struct ste_peer *home; /* data lies in its memory or its window */
	int home_slot;         /* -1: memory */
};

/* ---- sources ---- */

struct ste_src {
	struct ste_source s;
	uint32_t n_streams; /* open, opening */
	_Atomic uint32_t n_up;
	int good_addr;      /* reached it once; -1: not yet */
	uint32_t next_addr; /* to be tried */
	uint32_t rounds;    /* in which no address was reached */
	uint64_t retry_ns;  /* no new stream before */
	uint32_t strikes;   /* times that streams were lost since something right came last */
	uint64_t struck_ns; /* the last of these */
	uint32_t wrong;     /* answers that did not fit their hashes, and no member is a suspect */
	uint64_t liars;     /* members that were, and are not asked any more: see wst_request */
	_Atomic uint32_t not_yet; /* such answers in a row */
	uint64_t not_yet_ns;      /* since then */
	uint64_t cursor;          /* others: leaf from which on they are asked */
	uint64_t base_ns;         /* shortest time of an answer; UINT64_MAX: none yet */
	uint64_t waiting;         /* see ste_load */
	bool exhausted;           /* of ours or theirs: what a stream takes; until one is up */
	char last[STE_TEXT_MAX];  /* what went wrong last; that, as long as it lasts */
	_Atomic uint64_t bytes;
	_Atomic bool lost;
	char text[STE_TEXT_MAX]; /* before lost */
};

/* What epoll reports. */
enum ste_fd_kind { STE_FD_BELL = 0, STE_FD_STREAM, STE_FD_CONN };
struct ste_fd {
	uint8_t kind;
	int fd;
	uint32_t events; /* asked for */
};

struct ste_ask {
	struct wst_request req;
	uint64_t sent_ns;
	uint64_t len;   /* payload bytes expected */
	uint64_t ahead; /* all that were, with these */
};

enum ste_stream_state { STE_CONNECTING = 1, STE_GREETING, STE_UP };

/* To a source. */
struct ste_stream {
	struct ste_fd f;
	struct ste_job *j;
	struct ste_src *src;
	uint8_t state;  /* enum ste_stream_state */
	bool busy;      /* the payload of an answer is coming in */
	bool stalled;   /* a block has come, and there is no room for it */
	uint8_t narrow; /* which segments it has, of cc_tcp_sizes */
	uint32_t addr, number, next_id;
	struct cc_key proof;      /* of the hello */
	uint8_t in[WLK_ACK_SIZE]; /* answer to the hello, or header */
	uint32_t in_have;
	uint8_t out[STE_ASKS * WST_HDR_SIZE];
	uint32_t out_from, out_to;
	struct ste_ask asks[STE_ASKS]; /* ring; without cur */
	uint32_t ask_head, n_asks;
	uint64_t ahead, window; /* payload bytes asked for, and how many may be */
	uint64_t rate;          /* of late; 0: nothing has come */
	uint64_t opened_ns;
	struct cc_addr here; /* our end, when it is up */
	uint32_t segs_in; /* with data, as TCP counts them: also those behind one that got lost */
	uint64_t segs_ns; /* when it has counted one last, as far as was looked at */
	uint64_t heard_ns, answered_ns; /* or since when there has been something to wait for */
	uint64_t quiet_ns;              /* asks nothing before */
	struct ste_ask cur;             /* busy or stalled: what is answered */
	uint8_t *dst;
	uint32_t got, len, checked; /* bytes of the payload; leaves of it that are right */
	uint8_t member;             /* of the source, that the payload is of, see wst_answer */
	struct ste_block *block;    /* landing; NULL: hashes, or bytes that nobody wants any more */
	/* Hashes of one kind, of one tensor, that take several requests: those that are still to be
	 * asked for, none before the first ones were had. hash_end is 0 when there are no such. */
	uint8_t hash_kind;
	uint32_t hash_tensor;
	uint64_t hash_next, hash_end;
	struct ste_stream *next;
};

/* ---- jobs ---- */

enum ste_leaf { STE_LEAF_UNKNOWN = 0, STE_LEAF_MISSING, STE_LEAF_ASKED, STE_LEAF_HAVE };
enum ste_tensor {
	STE_TENSOR_UNKNOWN = 0,
	STE_TENSOR_SAME,  /* for all receivers here, or never compared */
	STE_TENSOR_WANT,  /* its leaf hashes are */
	STE_TENSOR_ASKED, /* one stream gets its leaf hashes */
	STE_TENSOR_READY, /* leaf hashes are known, leaves compared */
};

struct ste_job {
	struct ste *e;
	uint64_t seq, revision;
	uint32_t group;
	struct wm_digest content;
	hsh_leaf_fn *leaf_fn;
	uint32_t n_peers, n_srcs;
	struct ste_peer *peers;
	struct ste_src *srcs;
	uint32_t n_tensors;
	uint64_t n_leaves;
	const struct ste_peer *table;           /* whose manifest tells names; NULL: nobody's */
	const struct shm_state_tensor *tensors; /* of one of them */
	struct ste_set receivers;               /* that have not failed */
	struct ste_set holders;                 /* that have all */
	uint64_t *want;                         /* tensor hashes */
	bool have_want, want_asked;             /* asked: by one stream */
	uint8_t *tensor;                        /* enum ste_tensor of each */
	uint64_t *elected;                      /* leaf hashes */
	uint64_t *scratch; /* for the leaf hashes of the largest tensor, or the hashes of all */
	uint8_t *leaf;     /* enum ste_leaf of each */
	uint32_t unready;  /* tensors that differ, but are not READY */
	uint32_t next_want;
	uint64_t n_missing, n_asked; /* leaves */
	uint64_t cursor;             /* leaf */
	uint32_t next_holder;
	struct ste_block blocks[STE_BLOCKS];
	uint32_t n_blocks;
	struct ste_stream *streams;
	uint32_t n_streams;
	uint64_t base_ns;             /* of the farthest source that something comes from */
	uint64_t here_ns;             /* last look at our own addresses */
	uint64_t paced_ns, paced_rx;  /* last look at the rate, and net_rx then */
	bool started, fetching, over; /* over: DONE or FAILED has been told */
	uint64_t moved_ns;            /* last progress */
	uint64_t rate_ns, rate_done;
	_Atomic uint32_t phase, waits_for;
	_Atomic uint64_t total, done, rate, net_rx, net_tx, moved;
	struct cc_id suspect;
	bool exhausted; /* see ste_event */
	char text[STE_TEXT_MAX];
	struct ste_job *next;
	_Atomic bool members_told; /* STE_NOTE_MEMBERS is under way */
	/* L */
	bool cancelling;
	struct ste_job *l_next;
};

/* ---- streams of others ---- */

#define STE_PIECES 4u
struct ste_piece {
	struct ste_peer *peer;
	int slot;
	uint32_t len;
	bool ready;
};

struct ste_conn {
	struct ste_fd f;
	uint32_t number;
	bool names;   /* answers say whose memory they are of */
	uint64_t seq; /* whose requests are answered */
	uint8_t in[64 * WST_HDR_SIZE];
	uint32_t in_from, in_to;
	bool answering;
	uint8_t hdr[WST_HDR_SIZE];
	uint32_t hdr_done;
	struct ste_job *j; /* whose bytes are being sent; NULL: none */
	struct ste_peer *peer;
	const uint8_t *data; /* NULL: by pieces */
	uint32_t left;       /* payload bytes to be sent */
	bool count;          /* they are a tensor's */
	uint32_t tensor;
	uint64_t read_off;  /* in the tensor: next to be read into a slot */
	uint32_t read_left; /* bytes */
	struct ste_piece pieces[STE_PIECES];
	uint32_t piece_head, n_pieces, piece_sent;
	uint64_t moved_ns;
	struct ste_conn *next;
};

/* ---- threads that copy ---- */

#define STE_TASKS 64u

/* A block, and the receiver's tensor that it goes to. */
struct ste_task {
	struct ste_job *j;
	struct ste_block *b;
	struct ste_peer *p;
	uint8_t *dst;
	bool right;
	struct ste_task *next;
};

struct ste_pool {
	bool ready;
	pthread_mutex_t lock;
	pthread_cond_t work, news; /* for the pool; for the thread */
	struct ste_task *todo, **todo_end, *done;
	uint32_t n_running;
	_Atomic uint32_t n_done;
	bool quit;
	/* The thread's alone. */
	uint32_t max, n_threads, n_given;
	pthread_t threads[STE_POOL_MAX];
	struct ste_task tasks[STE_TASKS], *free;
	uint64_t used_ns;
	_Atomic uint64_t n_copied; /* L: reads */
};

/* ---- the engine ---- */

/* See narrow.c. */
#define STE_NARROW_MAX 64u
struct ste_narrow {
	struct cc_id agent;
	uint8_t times; /* its place in cc_tcp_sizes */
	uint64_t since_ns;
};

struct ste {
	struct ste_config cfg;
	struct worker worker;
	struct ste_fd bell;
	bool quit;
	struct ste_job *jobs;
	struct ste_conn *conns;
	struct ste_stream *closed_streams; /* to be freed after the present batch of epoll events */
	struct ste_conn *closed_conns;
	uint32_t next_conn;
	uint64_t now_ns, looked_ns;
	uint64_t last_seq; /* greatest started */
	struct ste_pool pool;
	struct ste_narrow narrow[STE_NARROW_MAX];
	uint8_t *drain; /* WST_LEN_MAX bytes: where payload goes that nobody wants */
	_Atomic uint32_t n_conns;
	_Atomic uint32_t bounds_ms[CC_BOUNDS];
	/* L */
	uint32_t n_jobs;
	uint64_t busy_ns; /* when there was last something to do */
	struct ste_job *l_jobs, *dead;
};

enum ste_note { STE_NOTE_DONE = 0, STE_NOTE_FAILED, STE_NOTE_CANCELLED, STE_NOTE_MEMBERS };

/* state.c */
void ste_notify(struct ste_job *j, enum ste_note note);
int ste_watch(
	struct ste *e, struct ste_fd *f, uint32_t events); /* also to change what is watched */

static inline uint32_t ste_bound_ms(const struct ste *e, enum cc_bound b)
{
	return atomic_load_explicit(&e->bounds_ms[b], memory_order_relaxed);
}

/* job.c */
int ste_job_new(struct ste *e, const struct ste_spec *spec, struct ste_job **ret);
void ste_job_free(struct ste_job *j);
/* In the thread: members are checked, what can be compared is. */
void ste_job_begin(struct ste_job *j);
/* True: there is more to do at once. */
bool ste_job_step(struct ste_job *j);
void ste_job_fail(struct ste_job *j, const struct cc_id *suspect, const char *text);
/* Do these tensor hashes make the elected digest? */
bool ste_job_is_content(struct ste_job *j, const uint64_t *hashes, size_t n);
/* j->want is there: holds it against the elected digest and compares. False: it is wrong. */
bool ste_job_take_tensors(struct ste_job *j);
/* The elected leaf hashes of a tensor are there: likewise. */
bool ste_job_take_leaves(struct ste_job *j, uint32_t tensor);
/* The leaf is right. May set the elected hash of a tensor's only leaf. */
bool ste_job_leaf_is(
	struct ste_job *j, uint32_t tensor, uint64_t leaf, const uint8_t *data, size_t len);
/* All leaves of a block. */
bool ste_job_block_is(struct ste_job *j, const struct ste_block *b, const uint8_t *data);
/* Copies a block to dst, and tells whether all its leaves are right there. For a block of more than
 * one leaf by any thread, while the job lasts. */
bool ste_job_block_copy(struct ste_job *j, const struct ste_block *b, uint8_t *dst);
/* Receivers that lack the leaf (of all). */
struct ste_set ste_job_lackers(const struct ste_job *j, uint64_t leaf);
bool ste_job_is_lacked(const struct ste_job *j, uint64_t leaf);
/* Takes the next missing leaves from *cursor on, at most max. False: there are none. */
bool ste_job_pick(struct ste_job *j, uint64_t *cursor, uint32_t max, struct ste_block *ret);
/* Leaves that were picked: those that nobody lacks are there, others are missing again. */
void ste_job_settle(struct ste_job *j, uint32_t tensor, uint64_t first, uint32_t n);
/* The member has the leaves of the block now. */
void ste_job_got(struct ste_job *j, struct ste_peer *p, const struct ste_block *b);
const char *ste_job_name(const struct ste_job *j, uint32_t tensor, char *buf, size_t size);
struct ste_peer *ste_job_holder(struct ste_job *j); /* in turn; NULL: none */
void ste_job_moved(struct ste_job *j);

/* member.c */
/* What it offered; makes it a holder, a receiver, or neither. */
void ste_peer_check(struct ste_job *j, struct ste_peer *p);
/* Its memory is about to be written to, not by commands. */
void ste_peer_touch(struct ste_peer *p);
/* A block's place in registered memory is about to be written to: maps its pages, all at once,
 * because a fault for each costs twice as much. What cannot be mapped so will be by faults. By any
 * thread. */
void ste_peer_map(const struct ste_peer *p, const struct ste_block *b);
void ste_peer_set_complete(struct ste_job *j, struct ste_peer *p);
__attribute__((format(printf, 3, 4))) void ste_peer_fail(
	struct ste_job *j, struct ste_peer *p, const char *fmt, ...);
void ste_peer_drop(struct ste_job *j, struct ste_peer *p);
/* What the tensor lies in, or NULL. */
const struct ste_region *ste_peer_region(const struct ste_peer *p, uint32_t tensor);

/* window.c */
/* A free slot, or -1. */
int ste_window_take(struct ste_peer *p, enum ste_use use);
uint8_t *ste_window_at(const struct ste_peer *p, int slot);
void ste_window_command(struct ste_peer *p, const struct shm_state_command *c, void *owner);
/* The owner does not need the slot any more. */
void ste_window_put(struct ste_peer *p, int slot);
/* Reads acknowledgements. True if there were any. */
bool ste_window_acks(struct ste_job *j, struct ste_peer *p);
/* Asks to be woken. True: there is an acknowledgement already. */
bool ste_window_sleep(struct ste_peer *p);
uint32_t ste_window_waiting(const struct ste_peer *p); /* commands not acknowledged */

/* copy.c */
struct ste_block *ste_block_take(struct ste_job *j);
/* Where a block from the network is to be put. False: no room now. mask: receivers that lack it */
bool ste_block_land(struct ste_job *j, struct ste_block *b, const struct ste_set *mask);
/* It is there and right at home. */
void ste_block_landed(struct ste_job *j, struct ste_block *b);
void ste_block_drop(struct ste_job *j, struct ste_block *b);
void ste_block_acked(struct ste_job *j, struct ste_peer *p, int slot);
/* Its process cannot map the block's home, or what it found there was wrong. */
void ste_block_refused(struct ste_job *j, struct ste_peer *p, int slot, bool wrong);
/* A member failed: nothing waits for it any more. */
void ste_block_forget(struct ste_job *j, struct ste_peer *p);
/* Nothing is at home there any more; after the above. */
void ste_block_evict(struct ste_job *j, struct ste_peer *p);
/* What was given to the pool. */
void ste_block_copied(struct ste_job *j, struct ste_block *b, struct ste_peer *p, bool right);
/* Blocks that wait for slots; copies from holders. True: there is more to do at once. */
bool ste_copy_step(struct ste_job *j);

/* pool.c: by the thread, but for the first two */
bool ste_pool_init(struct ste_pool *c, uint32_t wanted);
void ste_pool_destroy(struct ste_pool *c);
/* False: to be copied at once, by whoever asks. Else ste_block_copied follows. */
bool ste_pool_give(struct ste_job *j, struct ste_block *b, struct ste_peer *p, uint8_t *dst);
bool ste_pool_help(struct ste *e);    /* with one task; false: none waits */
bool ste_pool_collect(struct ste *e); /* what is done */
void ste_pool_settle(struct ste *e);  /* likewise, until nothing is under way */
void ste_pool_tick(struct ste *e);    /* ends threads that are idle */
void ste_pool_end(struct ste *e);

/* fetch.c */
void ste_fetch_begin(struct ste_job *j);
/* Opens streams, asks, looks at the time. */
void ste_fetch_step(struct ste_job *j);
void ste_fetch_end(struct ste_job *j);               /* closes all streams */
uint64_t ste_fetch_next_ns(const struct ste_job *j); /* when a step can have something to do */
enum ste_fault {
	STE_FAULT_NONE,
	STE_FAULT_LOST,  /* the stream */
	STE_FAULT_LIMIT, /* the other agent has reached one */
	STE_FAULT_SHORT, /* an answer without what is needed */
	STE_FAULT_WRONG,
	STE_FAULT_GONE,
};
/* What was asked of the stream will be asked anew, and the stream is closed. */
void ste_stream_lost(struct ste_stream *s, enum ste_fault fault, const char *why);
void ste_stream_up(struct ste_stream *up);
void ste_stream_not_yet(struct ste_stream *s);
void ste_stream_right(struct ste_stream *s, uint64_t bytes);
/* An ask that was not fulfilled. */
void ste_fetch_return(struct ste_job *j, const struct wst_request *r);

/* pace.c: pure */
struct ste_load {         /* of a source */
	uint64_t bytes;   /* that came from it */
	uint32_t streams; /* that bring something; 0: it does not count */
	uint64_t waiting; /* bytes of each stream that are to wait on their way */
};
struct ste_came {                  /* an answer */
	uint64_t len, ahead;       /* see ste_ask */
	uint64_t took_ns, base_ns; /* from ask to end, not 0; the shortest time that it ever took */
};
/* Bytes of all streams that are to wait, when `rate` come per second and the farthest source
 * answers after base_ns. */
uint64_t ste_pace_all(uint64_t rate, uint64_t base_ns);
/* Sets `waiting` of each source; leaves it if nothing comes of any. */
void ste_pace_share(struct ste_load *v, uint32_t n, uint64_t all);
/* A stream's window after an answer. */
uint64_t ste_pace_window(uint64_t window, const struct ste_came *c, uint64_t waiting);
/* What is left to be done. Streams of which nothing has come yet are taken for as fast as others.
 */
struct ste_rest {
	uint64_t bytes;          /* asked of all streams, and still to be asked for */
	uint32_t streams, known; /* that share it; whose rate is known */
	uint64_t rates;          /* of these together */
	uint64_t rate;           /* of the one that is to ask; 0: not known */
	uint64_t ahead, window;  /* of that one */
};
/* The leaves that a stream asks for next, so that all end together; 0: none now. */
uint32_t ste_pace_leaves(const struct ste_rest *r);

/* stream.c */
/* narrow.c, before the stream is connected: segments as small as this source needs. */
void ste_narrow_begin(struct ste_stream *s);
/* Nothing has come for a while, although the other host is heard: large packets may get lost. */
/* Has data come in on it since this was asked last, in whatever order? */
bool ste_narrow_hears(struct ste_stream *s);
bool ste_narrow_suspect(const struct ste_stream *s);
/* Of a suspect: has the next streams have smaller segments, where there are any. */
void ste_narrow_shrink(struct ste_stream *s);
bool ste_stream_open(struct ste_job *j, struct ste_src *src, uint32_t addr, char why[STE_TEXT_MAX]);
void ste_stream_close(struct ste_stream *s); /* and takes it from the job's list */
void ste_stream_ready(struct ste_stream *s, uint32_t events);
void ste_stream_ask(struct ste_stream *s, struct wst_request *r, uint64_t len);
void ste_stream_flush(struct ste_stream *s);
void ste_stream_resume(struct ste_stream *s); /* stalled: is there room now? */

/* serve.c */
struct ste_conn *ste_conn_new(const struct ste *e, int fd, uint64_t features, uint64_t seq);
void ste_conn_add(struct ste *e, struct ste_conn *c);
void ste_conn_ready(struct ste *e, struct ste_conn *c, uint32_t events);
void ste_conn_step(struct ste *e, struct ste_conn *c); /* goes on if it can */
void ste_conn_acked(struct ste *e, struct ste_conn *c, struct ste_peer *p, int slot);
void ste_conn_close(struct ste *e, struct ste_conn *c);
/* Nothing of the job (and of the member, unless NULL) is sent any more. */
void ste_conns_forget(struct ste *e, struct ste_job *j, const struct ste_peer *p);
void ste_conns_tick(struct ste *e);

#endif
