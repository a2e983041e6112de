/* SPDX-License-Identifier: MIT
 *
 * One peer that executes commands. Each line of standard input is a command, and each line of
 * standard output is an answer. Words after the command are key=value. An answer starts with the
 * name of the command. Most answers have code=N (a pcclResult_t), begin= and end= (CLOCK_MONOTONIC,
 * ns) and, as the last word, text= with the text of pcclGetLastError, up to the end of the line.
 *
 *	create [streams=N] [master=A:P], connect, update, pending, destroy
 *                          after create, SIGUSR2 calls pcclInterrupt
 *	second [made=thread] [connected=thread]
 *                          connects another communicator to the run, and destroys it
 *	until world=N ms=N        calls pcclUpdateTopology until the run has N peers
 *	attr                      prints the four attributes
 *	alloc bytes=N             allocates memory with pcclMemAlloc, writes to it and keeps it;
 *                          only one allocation at a time
 *	closefrom                 closes all descriptors above 2, also those of the library; with
 *                          mine=1 opens pairs of sockets, which get the freed descriptor
 *                          numbers; a forked child checks them: child= (how many sockets
 *                          have changed)
 *	mine                      checks these sockets in this process: touched= (how many have
 *                          changed)
 *	free                      frees the memory of alloc: check=ok, or the fault of its
 *                          contents
 *	submit slot=N OP          starts an operation
 *	await slot=N              awaits it; checks result and buffers: check=ok, or the fault
 *	reduce OP                 calls pcclAllReduce and checks like await; with retry=N repeats
 *                          the call while peers are lost (hurry=1: without checks of the
 *                          buffers in between)
 *	mean n=N OP               runs N operations with the same operands, and then checks the
 *                          mean of the results (f32, not in place)
 *	storm n=N OP              runs N operations without pause, except after every 64; each has
 *                          its own data; lost operations are repeated. Prints "prepared",
 *                          then begin= and end= of all, lost= calls, longest= (ns) call,
 *                          hash= of all results
 *	many n=N OP               runs N operations at once; lost operations are repeated after
 *                          all have been awaited
 *	several n=N window=N OP   runs N operations with pcclAllReduceMultipleWithRetry; prints an
 *                          answer for each; with twice=1 the last one has the tag of the
 *                          first one
 *	bench n=N OP              runs N operations one after the other on the same buffers: times
 *                          in ns
 *	threads n=N OP            another thread runs N operations: first together with the main
 *                          thread's votes, then one after the other; the main thread calls
 *                          pcclArePeersPending until there are newcomers, at least 20 times
 *	optimize                  calls pcclOptimizeTopology
 *	beside OP                 calls pcclOptimizeTopology. After SIGUSR1 another thread calls
 *                          pcclAllReduce: launch= (its code)
 *	state revision=N          creates the shared state, without tensors
 *	tensors n=N name=T type=f32 count=N seed=N
 *                          adds N tensors (T0, T1, ... or T), whose contents follow from
 *                          seed; optional: mem=shared, shift=N (bytes), like=N (other
 *                          contents), differ=1 (allow_content_inequality), pad=N (bytes of
 *                          the name), freeze=1 (the process stops itself when the middle is
 *                          written); prints at=, the address of the last tensor
 *	spoil name=T at=N n=N     changes bytes of one tensor, or of all
 *	digest                    prints hash= of all contents that must be equal, or with name=T
 *                          of tensor T
 *	sync strategy=popular|receive|send|NUMBER
 *                          synchronizes: tx= rx= revision= check= hash= (unless hash=0)
 *                          longest= (ns); optional: revision=N, retry=N (while peers are
 *                          lost)
 *	memcpy bytes=N n=N        measures plain copies: times in ns
 *	cuda at=N error=E         lets the N-th call of the double of the driver fail (device.h)
 *	master addr=A:P, master-signal, master-await, master-destroy
 *	quit
 *
 * OP: type=f32 op=sum count=N seed=N tag=N, ids=0,1,2 (the peers whose data must be in the result;
 * or=0,1: the peers of another allowed result). Optional: place=in, mem=shared|send|recv
 * (pcclMemAlloc for both buffers or one), shift=N (elements between the start of a page and the
 * buffers), special=1, verify=1 (also computes the result), disposable=1 (pcclOutputDisposable),
 * freeze=1 (the process stops itself when half of sendbuf is read, or with 2 when its end is read),
 * wrong=type|count|op|quantization (an invalid argument), quant=N qtype=N hint=N (quantization, in
 * numbers of pccl.h; with verify=1 the answer has error=, the relative error of the result).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/e2e/device.h"
#include "tests/e2e/peer.h"

#define WORDS_MAX 24

struct peer peer;
static pcclCommCreateParams_t params;
static pcclMasterInstance_t *master;

static char *words[WORDS_MAX];
static int n_words;

_Noreturn void die(const char *what, const char *detail)
{
	fprintf(stderr, "peer: %s: %s\n", what, detail);
	exit(2);
}

uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- words */

const char *word(const char *key, const char *otherwise)
{
	size_t len = strlen(key);

	for (int i = 1; i < n_words; i++)
		if (strncmp(words[i], key, len) == 0 && words[i][len] == '=')
			return words[i] + len + 1;
	if (!otherwise)
		die("a word is missing", key);
	return otherwise;
}

uint64_t number(const char *key, const char *otherwise)
{
	const char *text = word(key, otherwise);
	char *end;
	uint64_t v = strtoull(text, &end, 0);

	if (end == text || *end)
		die("not a number", text);
	return v;
}

static ccoip_socket_address_t parse_address(const char *text)
{
	ccoip_socket_address_t a = {0};
	const char *colon = strrchr(text, ':');
	char ip[64];
	size_t skip = text[0] == '[', len;

	if (!colon)
		die("no address", text);
	len = (size_t)(colon - text) - 2 * skip;
	if (len >= sizeof ip)
		die("no address", text);
	memcpy(ip, text + skip, len);
	ip[len] = 0;
	a.port = (uint16_t)strtoul(colon + 1, NULL, 10);
	a.inet.protocol = skip ? inetIPv6 : inetIPv4;
	if (skip ? inet_pton(AF_INET6, ip, a.inet.ipv6.data) != 1
		 : inet_pton(AF_INET, ip, a.inet.ipv4.data) != 1)
		die("no address", text);
	return a;
}

/* Prints the end of an answer to a call. */
static void say_result(pcclResult_t r, const char *text, uint64_t begin, uint64_t end)
{
	printf(" code=%d begin=%" PRIu64 " end=%" PRIu64 " text=%s\n", (int)r, begin, end,
		r == pcclSuccess ? "" : text);
}

void say_outcome(pcclResult_t r, uint64_t begin, uint64_t end)
{
	say_result(r, pcclGetLastError(), begin, end);
}

/* ---- membership */

static int attribute(pcclAttribute_t a)
{
	int v = -1;

	if (pcclGetAttribute(peer.comm, a, &v) != pcclSuccess)
		return -1;
	return v;
}

static void on_interrupt(int signo)
{
	(void)signo;
	pcclInterrupt(peer.comm); /* NOLINT(bugprone-signal-handler): documented as safe */
}

static void do_create(void)
{
	struct sigaction sa = {.sa_handler = on_interrupt, .sa_flags = SA_RESTART};
	uint64_t begin = now();
	pcclResult_t r;

	params.p2p_connection_pool_size = (uint32_t)number("streams", "1");
	if (word("master", "")[0])
		params.master_address = parse_address(word("master", ""));
	r = pcclCreateCommunicator(&params, &peer.comm);
	sigaction(SIGUSR2, &sa, NULL);
	printf("create");
	say_outcome(r, begin, now());
}

static void do_connect(void)
{
	uint64_t begin = now();
	pcclResult_t r = pcclConnect(peer.comm);

	printf("connect");
	say_outcome(r, begin, now());
}

static void do_update(void)
{
	uint64_t begin = now();
	pcclResult_t r = pcclUpdateTopology(peer.comm);
	char text[512];

	snprintf(text, sizeof text, "%s",
		pcclGetLastError()); /* before the next call changes the text */
	printf("update world=%d", attribute(PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE));
	say_result(r, text, begin, now());
}

static void do_optimize(void)
{
	uint64_t begin = now();
	pcclResult_t r = pcclOptimizeTopology(peer.comm);

	printf("optimize");
	say_outcome(r, begin, now());
}

static pcclComm_t *second;
static pcclResult_t second_result;
static char second_text[512];
static _Atomic bool second_over;

static void *make_second(void *arg)
{
	if (pcclCreateCommunicator(&params, &second) != pcclSuccess)
		die("second", pcclGetLastError());
	return arg;
}

static void *connect_second(void *arg)
{
	second_result = pcclConnect(second);
	(void)snprintf(second_text, sizeof second_text, "%s", pcclGetLastError());
	atomic_store(&second_over, true);
	return arg;
}

static void in_thread(void *(*run)(void *), pthread_t *ret)
{
	if (pthread_create(ret, NULL, run, NULL) != 0)
		die("second", "pthread_create");
}

/* made=thread: the communicator is created by a thread that has ended. connected=thread: another
 * thread connects it, while this thread votes. */
static void do_second(void)
{
	int world_size = attribute(PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE);
	uint64_t begin = now();
	pthread_t t;

	atomic_store(&second_over, false);
	if (strcmp(word("made", ""), "thread") == 0) {
		in_thread(make_second, &t);
		pthread_join(t, NULL);
	} else {
		make_second(NULL);
	}
	if (strcmp(word("connected", ""), "thread") == 0) {
		in_thread(connect_second, &t);
		while (!atomic_load(&second_over) &&
			attribute(PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE) == world_size &&
			pcclUpdateTopology(peer.comm) == pcclSuccess)
			usleep(2000);
		pthread_join(t, NULL);
	} else {
		connect_second(NULL);
	}
	printf("second");
	say_result(second_result, second_text, begin, now());
	(void)pcclDestroyCommunicator(second);
}

/* Waits for newcomers. No call waits for a newcomer, so the function votes until there is one. It
 * pauses for two milliseconds after each vote, because a vote in a run with one peer takes no
 * time. */
static void do_until(void)
{
	int world_size = (int)number("world", NULL);
	uint64_t begin = now(), limit = begin + number("ms", "20000") * 1000000u;
	struct timespec pause = {.tv_nsec = 2000000};
	pcclResult_t r = pcclSuccess;

	while (attribute(PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE) != world_size && now() < limit) {
		r = pcclUpdateTopology(peer.comm);
		if (r != pcclSuccess && r != pcclUpdateTopologyFailed)
			break;
		if (attribute(PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE) != world_size)
			nanosleep(&pause, NULL);
	}
	printf("until world=%d", attribute(PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE));
	say_outcome(r, begin, now());
}

static void do_pending(void)
{
	bool pending = false;
	uint64_t begin = now();
	pcclResult_t r = pcclArePeersPending(peer.comm, &pending);

	printf("pending pending=%d", pending);
	say_outcome(r, begin, now());
}

static void do_attr(void)
{
	printf("attr global=%d group=%d groups=%d largest=%d\n",
		attribute(PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE),
		attribute(PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE),
		attribute(PCCL_ATTRIBUTE_NUM_DISTINCT_PEER_GROUPS),
		attribute(PCCL_ATTRIBUTE_LARGEST_PEER_GROUP_WORLD_SIZE));
}

static void do_destroy(void)
{
	uint64_t begin = now();
	pcclResult_t r = pcclDestroyCommunicator(peer.comm);

	peer.comm = NULL;
	operations_given_up();
	printf("destroy");
	say_outcome(r, begin, now());
}

/* ---- memory that no operation uses */

static struct {
	unsigned char *base;
	size_t size;
} held;

static void do_alloc(void)
{
	size_t size = (size_t)number("bytes", NULL);
	uint64_t begin = now(), end;
	void *p = NULL;
	pcclResult_t r;

	if (held.base)
		die("alloc", "there is memory already");
	r = pcclMemAlloc(size, &p);
	end = now();
	if (r == pcclSuccess) {
		memset(p, 0x5a, size);
		held.base = p;
		held.size = size;
	}
	printf("alloc");
	say_outcome(r, begin, end);
}

static void do_free(void)
{
	const char *check = "ok";
	uint64_t begin;
	pcclResult_t r;

	for (size_t i = 0; i < held.size; i++)
		if (held.base[i] != 0x5a)
			check = "changed";
	begin = now();
	r = pcclMemFree(held.base);
	held.base = NULL;
	held.size = 0;
	printf("free check=%s", check);
	say_outcome(r, begin, now());
}

/* ---- a master in this process */

static void on_signal(int signo)
{
	(void)signo;
	pcclInterruptMaster(master);
}

static void do_master(void)
{
	struct sigaction sa = {.sa_handler = on_signal};
	uint64_t begin = now();
	pcclResult_t r = pcclCreateMaster(parse_address(word("addr", NULL)), &master);

	if (r == pcclSuccess)
		r = pcclRunMaster(master);
	sigaction(SIGUSR1, &sa, NULL);
	printf("master");
	say_outcome(r, begin, now());
}

static void do_master_signal(void)
{
	uint64_t begin = now();

	raise(SIGUSR1);
	printf("master-signal");
	say_outcome(pcclSuccess, begin, now());
}

static void do_master_await(void)
{
	uint64_t begin = now();
	pcclResult_t r = pcclMasterAwaitTermination(master);

	printf("master-await");
	say_outcome(r, begin, now());
}

#define PAIRS 64 /* more descriptors than the library has */

static int pairs[PAIRS][2];

static void make_pairs(void)
{
	for (unsigned i = 0; i < PAIRS; i++) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pairs[i]) < 0 ||
			send(pairs[i][0], "mine", 4, 0) != 4 ||
			send(pairs[i][1], "mine", 4, 0) != 4)
			die("socketpair", strerror(errno));
	}
}

/* Returns the number of ends that are not as make_pairs left them. */
static unsigned touched(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < 2 * PAIRS; i++) {
		struct pollfd p = {.fd = pairs[i / 2][i % 2], .events = POLLIN | POLLRDHUP};
		char text[64];

		n += poll(&p, 1, 0) != 1 || p.revents != POLLIN ||
		     recv(p.fd, text, sizeof text, MSG_PEEK | MSG_DONTWAIT) != 4 ||
		     memcmp(text, "mine", 4) != 0;
	}
	return n;
}

static void do_closefrom(void)
{
	int status = 0;
	pid_t child;

	closefrom(3);
	if (number("mine", "0")) {
		make_pairs();
		child = fork();
		if (child == 0)
			_exit((int)touched());
		if (child < 0 || waitpid(child, &status, 0) != child)
			die("fork", strerror(errno));
	}
	printf("closefrom child=%d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

static void do_mine(void)
{
	printf("mine touched=%u\n", touched());
}

static void do_master_destroy(void)
{
	uint64_t begin = now();
	pcclResult_t r = pcclDestroyMaster(master);

	printf("master-destroy");
	say_outcome(r, begin, now());
}

/* ---- */

static const struct command {
	const char *name;
	void (*fn)(void);
} commands[] = {
	{"closefrom", do_closefrom},
	{"mine", do_mine},
	{"create", do_create},
	{"connect", do_connect},
	{"second", do_second},
	{"update", do_update},
	{"optimize", do_optimize},
	{"until", do_until},
	{"pending", do_pending},
	{"attr", do_attr},
	{"alloc", do_alloc},
	{"free", do_free},
	{"submit", do_submit},
	{"await", do_await},
	{"reduce", do_reduce},
	{"mean", do_mean},
	{"storm", do_storm},
	{"many", do_many},
	{"several", do_several},
	{"bench", do_bench},
	{"threads", do_threads},
	{"beside", do_beside},
	{"state", do_state},
	{"tensors", do_tensors},
	{"spoil", do_spoil},
	{"digest", do_digest},
	{"sync", do_sync},
	{"memcpy", do_memcpy},
	{"cuda", do_cuda},
	{"destroy", do_destroy},
	{"master", do_master},
	{"master-signal", do_master_signal},
	{"master-await", do_master_await},
	{"master-destroy", do_master_destroy},
};

static void carry_out(char *line)
{
	char *rest, *w;

	n_words = 0;
	for (w = strtok_r(line, " \n", &rest); w && n_words < WORDS_MAX;
		w = strtok_r(NULL, " \n", &rest))
		words[n_words++] = w;
	for (size_t i = 0; n_words && i < sizeof commands / sizeof commands[0]; i++) {
		if (strcmp(words[0], commands[i].name) == 0) {
			peer.command = words[0];
			commands[i].fn();
			fflush(stdout);
			return;
		}
	}
	die("no such command", n_words ? words[0] : "");
}

/* Makes the creation of processes and threads fail from now on, as in a container with old seccomp
 * rules. */
static void refuse_clone(void)
{
	static const uint32_t refused[] = {
		SYS_clone,
		SYS_clone3,
#ifdef SYS_fork
		SYS_fork,
		SYS_vfork,
#endif
	};
	struct sock_filter f[2 * sizeof refused / sizeof refused[0] + 2];
	struct sock_fprog p = {.filter = f};

	f[p.len++] = (struct sock_filter)BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
		f[p.len++] =
			(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, refused[i], 0, 1);
		f[p.len++] =
			(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	}
	f[p.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p) < 0)
		die("seccomp", strerror(errno));
}

int main(int argc, char **argv)
{
	char line[4096];

	n_words = argc;
	for (int i = 0; i < argc && i < WORDS_MAX; i++)
		words[i] = argv[i];
	peer.id = (uint32_t)number("id", "0");
	params.master_address = parse_address(word("master", NULL));
	params.peer_group = (uint32_t)number("group", "0");
	if (pcclInit() != pcclSuccess)
		die("pcclInit", pcclGetLastError());
	if (getenv("PEER_REFUSE_CLONE"))
		refuse_clone();
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof line, stdin) && strcmp(line, "quit\n") != 0)
		carry_out(line);
	return 0;
}
