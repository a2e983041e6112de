/* SPDX-License-Identifier: MIT
 *
 * The master runs as a child process, and clients behave badly. Whatever they do, the master serves
 * a good agent afterwards. When the child gets the signal to end, it ends without an error, also
 * without an error of a sanitizer.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ccoip-masterd/masterd.h"
#include "ccoip-masterd/sources.h"
#include "common/cc_err.h"
#include "common/cc_sys.h"
#include "daemon/cc_channel.h"
#include "proto/wire_codes.h"
#include "proto/wire_frame.h"
#include "tests/common/testlib.h"
#include "tests/ctl/suites.h"

static struct masterd_config cfg;
static struct cc_addr addr;
static FILE *log_file;
static int leash = -1;
static pid_t child;

static _Noreturn void be_master(int parent_fd)
{
	struct masterd *m;
	int err = 1, code;

	dup2(fileno(log_file), STDERR_FILENO);
	signal(SIGPIPE, SIG_IGN);
	cfg.parent_fd = parent_fd;
	m = masterd_new(&cfg, &code);
	if (m) {
		err = masterd_run(m);
		masterd_free(m);
	}
	fclose(log_file);
	exit(err ? 1 : 0);
}

static void prepare(void)
{
	struct rlimit rl;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &rl), 0);
	rl.rlim_cur = rl.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &rl), 0);
	signal(SIGPIPE, SIG_IGN);
	masterd_config_init(&cfg);
	log_file = tmpfile();
	ck_assert_ptr_nonnull(log_file);
	/* Both processes share this descriptor and its position in the file. */
	ck_assert_int_eq(fcntl(fileno(log_file), F_SETFL, O_APPEND), 0);
}

static void start(void)
{
	int fds[2];

	addr = (struct cc_addr){.family = CC_INET4, .ip = {127, 0, 0, 1}};
	cfg.listen_fds[0] = cc_listen_tcp(&addr, 0);
	ck_assert_int_ge(cfg.listen_fds[0], 0);
	cfg.n_listen = 1;
	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	fflush(NULL);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		close(fds[1]);
		be_master(fds[0]);
	}
	close(fds[0]);
	close(cfg.listen_fds[0]);
	leash = fds[1];
}

static void finish(void)
{
	int status;

	close(leash);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	if (status != 0) {
		char line[512];

		rewind(log_file);
		while (fgets(line, sizeof line, log_file))
			fputs(line, stderr);
	}
	ck_assert_int_eq(status, 0);
	fclose(log_file);
}

/* Returns the number of log lines that contain text. Opens the file again, because the master,
 * which may be writing, shares the position of log_file with this process. */
static unsigned log_lines(const char *text)
{
	char line[1024], path[32];
	unsigned n = 0;
	FILE *f;

	snprintf(path, sizeof path, "/proc/self/fd/%d", fileno(log_file));
	f = fopen(path, "r");
	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof line, f))
		n += strstr(line, text) != NULL;
	fclose(f);
	return n;
}

/* ---- clients ---- */

static int connect_agent(void)
{
	struct timeval tv = {10, 0};
	struct sockaddr_storage ss;
	socklen_t len = cc_addr_to_sockaddr(&addr, &ss);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv), 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&ss, len), 0);
	return fd;
}

static void put(int fd, const void *p, size_t len)
{
	if (len > 0)
		ck_assert_int_eq(send(fd, p, len, MSG_NOSIGNAL), (ssize_t)len);
}

static bool read_all(int fd, uint8_t *p, size_t len)
{
	size_t got = 0;

	while (got < len) {
		ssize_t n = recv(fd, p + got, len - got, 0);

		if (n == 0 || (n < 0 && errno == ECONNRESET))
			return false;
		ck_assert_int_gt(n, 0);
		got += (size_t)n;
	}
	return true;
}

static struct cc_seal *seals[4096]; /* by descriptor */

/* Reads the next message. Returns false at the end of the connection. */
static bool read_msg(int fd, struct wm_msg *msg)
{
	static uint8_t buf[WIRE_FRAME_HDR + WIRE_FRAME_MAX];
	uint8_t hdr[WIRE_FRAME_HDR];
	const char *why = "";
	int len;

	if (!read_all(fd, hdr, sizeof hdr))
		return false;
	len = cc_channel_peek(hdr, sizeof hdr);
	ck_assert_int_ge(len, 0);
	memcpy(buf, hdr, sizeof hdr);
	ck_assert(read_all(fd, buf + sizeof hdr, (size_t)len));
	ck_assert_msg(cc_channel_decode(seals[fd], buf, sizeof hdr + (size_t)len, msg, &why) == 0,
		"%s", why);
	return true;
}

static void expect(int fd, enum wm_type type, struct wm_msg *ret)
{
	struct wm_msg msg;

	do {
		ck_assert_msg(
			read_msg(fd, &msg), "closed instead of %s", wire_master_type_name(type));
		if (msg.type == WM_REFUSE && type != WM_REFUSE)
			ck_abort_msg("refused: %s", msg.u.refuse.text);
		if (msg.type != type)
			wire_master_clear(&msg);
	} while (msg.type != type);
	if (ret)
		*ret = msg;
	else
		wire_master_clear(&msg);
}

/* Reads the master's refusal and the end of the connection. Returns the refusal. */
static struct wm_refuse expect_refusal(int fd)
{
	struct wm_msg msg, more;

	expect(fd, WM_REFUSE, &msg);
	ck_assert(!read_msg(fd, &more));
	close(fd);
	return msg.u.refuse;
}

struct bytes {
	uint8_t b[4096];
	size_t n;
	struct cc_seal *seal; /* seal of the connection that gets the bytes; NULL: none */
};

static void add_msg(struct bytes *x, const struct wm_msg *msg)
{
	uint8_t *frame;
	size_t len;

	ck_assert_int_eq(x->seal ? cc_channel_encode(x->seal, msg, &frame, &len)
				 : wire_master_encode(msg, &frame, &len),
		0);
	ck_assert_uint_le(x->n + len, sizeof x->b);
	memcpy(x->b + x->n, frame, len);
	x->n += len;
	free(frame);
}

/* Connects and knocks. `x` must be empty; messages that are then added to it are for this
 * connection. */
static int knock(struct bytes *x)
{
	struct wm_msg msg = {.type = WM_KNOCK,
		.u.knock = {.version_min = WM_VERSION_MIN, .version_max = WM_VERSION_MAX}};
	int fd = connect_agent();

	ck_assert_int_lt(fd, 4096);
	cc_seal_free(seals[fd]);
	seals[fd] = cc_seal_new(false);
	msg.u.knock.share = *cc_seal_share(seals[fd]);
	x->seal = NULL;
	x->n = 0;
	add_msg(x, &msg);
	put(fd, x->b, x->n);
	expect(fd, WM_KNOCK_ACK, &msg);
	ck_assert_int_eq(cc_seal_agree(seals[fd], &msg.u.knock_ack.share), 0);
	x->seal = seals[fd];
	x->n = 0;
	return fd;
}

static void add_hello(struct bytes *x, uint32_t version_min, uint32_t version_max)
{
	struct wm_msg msg = {.type = WM_HELLO};
	struct wm_hello *h = &msg.u.hello;

	h->version_min = version_min;
	h->version_max = version_max;
	if (x->seal) {
		struct cc_identity *who = cc_identity_new();

		h->identity = *cc_identity_share(who);
		cc_seal_id_of(&h->identity, &h->agent);
		ck_assert_int_eq(cc_seal_prove(x->seal, who, &h->proof), 0);
		cc_identity_free(who);
	} else {
		cc_random_id(&h->agent);
	}
	strcpy(h->name, "host");
	h->n_addrs = 1;
	h->addrs[0] = (struct cc_addr){.family = CC_INET4, .ip = {192, 0, 2, 1}};
	h->port_p2p = 48150;
	h->port_shared_state = 48149;
	h->port_benchmark = 48151;
	add_msg(x, &msg);
}

static void add_join(struct bytes *x)
{
	struct wm_msg msg = {.type = WM_JOIN};

	cc_random_id(&msg.u.join.peer);
	cc_random_id(&msg.u.join.token);
	msg.u.join.pool_size = 1;
	msg.u.join.pid = 1;
	strcpy(msg.u.join.name, "program");
	add_msg(x, &msg);
}

/* Connects and adds the first messages of a member to `x`, without sending them. */
static int knock_to_join(struct bytes *x)
{
	int fd = knock(x);

	add_hello(x, WM_VERSION_MIN, WM_VERSION_MAX);
	add_join(x);
	return fd;
}

/* Adds the join of a peer that claims to be accepted, although the master does not know it. */
static void add_unknown(struct bytes *x)
{
	struct wm_msg msg = {
		.type = WM_JOIN, .u.join = {.pool_size = 1, .phase = WM_JOIN_ACCEPTED}};

	cc_random_id(&msg.u.join.peer);
	cc_random_id(&msg.u.join.token);
	add_msg(x, &msg);
}

/* Sends a hello and reads the answer, which proves that the master is alive and has processed all
 * earlier messages. */
static void check_alive(void)
{
	struct bytes x = {.n = 0};
	int fd = knock(&x);

	add_hello(&x, WM_VERSION_MIN, WM_VERSION_MAX);
	put(fd, x.b, x.n);
	expect(fd, WM_HELLO_ACK, NULL);
	close(fd);
}

static void add_header(struct bytes *x, uint32_t len)
{
	wire_frame_put(x->b, WIRE_KIND_MASTER, len);
	x->n = WIRE_FRAME_HDR;
}

/* ---- framing ---- */

START_TEST(hello_is_answered)
{
	struct bytes x = {.n = 0};
	struct wm_msg msg;
	int fd = knock(&x);

	add_hello(&x, WM_VERSION_MIN, WM_VERSION_MAX + 5);
	put(fd, x.b, x.n);
	expect(fd, WM_HELLO_ACK, &msg);
	ck_assert_uint_eq(msg.u.hello_ack.version, WM_VERSION_MAX);
	ck_assert(!cc_id_is_zero(&msg.u.hello_ack.run));
	ck_assert_uint_gt(msg.u.hello_ack.segment_max, 0);
	close(fd);
}
END_TEST

static void impatient(void)
{
	prepare();
	cfg.host_timeout_ms = 1400;
	start();
}

START_TEST(hello_answer_has_host_timeout)
{
	struct bytes x = {.n = 0};
	struct wm_msg msg;
	int fd = knock(&x);

	add_hello(&x, WM_VERSION_MIN, WM_VERSION_MAX);
	put(fd, x.b, x.n);
	expect(fd, WM_HELLO_ACK, &msg);
	ck_assert_uint_eq(msg.u.hello_ack.timeout_ms, 1400);
	ck_assert_uint_eq(msg.u.hello_ack.heartbeat_ms, 250);
	close(fd);
}
END_TEST

/* Ends the connection. Returns when the master has processed everything that was sent over it. */
static void end_client(int fd)
{
	struct wm_msg msg;

	shutdown(fd, SHUT_WR);
	while (read_msg(fd, &msg))
		wire_master_clear(&msg);
	close(fd);
	check_alive();
}

START_TEST(frames_cut_anywhere_are_understood)
{
	struct bytes probe = {.n = 0};
	int first = knock(&probe);

	add_hello(&probe, WM_VERSION_MIN, WM_VERSION_MAX);
	add_join(&probe);
	close(first);
	for (size_t at = 0; at <= probe.n; at++) {
		struct bytes x = {.n = 0};
		int fd = knock_to_join(&x);

		ck_assert_uint_eq(x.n, probe.n);
		put(fd, x.b, at);
		check_alive(); /* the master has read the first part separately */
		put(fd, x.b + at, x.n - at);
		expect(fd, WM_HELLO_ACK, NULL);
		expect(fd, WM_ROUND, NULL);
		end_client(fd);
	}
	ck_assert_uint_eq(log_lines("refused"), 0);
}
END_TEST

START_TEST(frames_sent_byte_by_byte_are_understood)
{
	struct bytes x = {.n = 0};
	int fd = knock_to_join(&x);

	for (size_t i = 0; i < x.n; i++) {
		put(fd, x.b + i, 1);
		if (i % 16 == 0)
			check_alive();
	}
	expect(fd, WM_HELLO_ACK, NULL);
	expect(fd, WM_ROUND, NULL);
	close(fd);
}
END_TEST

START_TEST(frames_sent_together_are_understood)
{
	struct wm_msg beat = {.type = WM_HEARTBEAT};
	struct bytes x = {.n = 0};
	struct wm_msg msg;
	int fd = knock_to_join(&x);

	for (unsigned i = 0; i < 20; i++)
		add_msg(&x, &beat);
	for (unsigned i = 0; i < 10; i++)
		add_join(&x);
	put(fd, x.b, x.n);
	expect(fd, WM_HELLO_ACK, NULL);
	do
		expect(fd, WM_ROUND, &msg);
	while (msg.u.round.rings[0].n_members == 0);
	wire_master_clear(&msg);
	end_client(fd);
	ck_assert_uint_eq(log_lines("refused"), 0);
}
END_TEST

START_TEST(malformed_bytes_of_every_length_are_refused)
{
	struct tl_rng rng = tl_rng_new(1);
	uint64_t since = cc_now_ns();
	unsigned refusals = 0;
	struct wm_msg msg;

	for (unsigned len = 0; len <= 300; len++) {
		for (unsigned framed = 0; framed < 2; framed++) {
			struct bytes x = {.n = 0};
			int fd = connect_agent();

			if (framed)
				add_header(&x, len);
			for (unsigned i = 0; i < len; i++)
				x.b[x.n++] = (uint8_t)tl_u64(&rng);
			put(fd, x.b, x.n);
			shutdown(fd, SHUT_WR);
			while (read_msg(fd, &msg)) {
				ck_assert_int_eq(msg.type, WM_REFUSE);
				ck_assert_ptr_nonnull(strstr(msg.u.refuse.text, "malformed"));
				wire_master_clear(&msg);
				refusals++;
			}
			close(fd);
		}
		if (len % 50 == 0)
			check_alive();
	}
	check_alive();
	/* The log gets at most ten refusals each second, and one line with the number of those that
	 * were left out. */
	ck_assert_uint_gt(refusals, 0);
	ck_assert_uint_gt(log_lines("refused"), 0);
	ck_assert_uint_le(
		log_lines("refused"), UINT64_C(11) * ((cc_now_ns() - since) / 1000000000u + 2));
}
END_TEST

/* An agent that is known sends malformed bytes. Only its own peers are lost. */
START_TEST(malformed_message_loses_only_peers_of_its_agent)
{
	struct bytes x = {.n = 0};
	int fd = knock_to_join(&x);

	put(fd, x.b, x.n);
	expect(fd, WM_ROUND, NULL);
	x.n = 0;
	add_header(&x, 4);
	memcpy(x.b + x.n, "\xff\xff\xff\xff", 4);
	put(fd, x.b, x.n + 4);
	ck_assert_ptr_nonnull(strstr(expect_refusal(fd).text, "malformed"));
	check_alive();
	ck_assert_uint_eq(log_lines("is refused"), 1);
}
END_TEST

static struct wm_refuse refusal_of(const struct bytes *x)
{
	int fd = connect_agent();

	put(fd, x->b, x->n);
	return expect_refusal(fd);
}

static void break_seal(unsigned how, const char *why)
{
	struct bytes x = {.n = 0}, other = {.n = 0};
	int fd = knock(&x), second = -1;
	struct wm_refuse r;

	if (how == 5)
		x.seal = NULL;
	add_hello(&x, WM_VERSION_MIN, WM_VERSION_MAX);
	if (how == 0) {
		put(fd, x.b, x.n);
		expect(fd, WM_HELLO_ACK, NULL);
	}
	if (how == 1)
		second = knock(&other);
	if (how == 2)
		x.b[WIRE_FRAME_HDR + 20] ^= 1;
	if (how == 3)
		x.b[x.n - 1] ^= 1;
	if (how == 4)
		second = connect_agent();
	put(second < 0 ? fd : second, x.b, x.n);
	r = expect_refusal(second < 0 ? fd : second);
	ck_assert_msg(strstr(r.text, why) != NULL, "%s", r.text);
	if (second >= 0)
		close(fd);
}

/* A sealed frame is accepted only once, only on the connection for which it was sealed, and only if
 * it is unchanged. A secret in clear text is refused. */
START_TEST(sealed_frames_count_once_and_unchanged)
{
	break_seal(0, "not under the seal of this connection"); /* the same frame again */
	break_seal(1, "not under the seal of this connection"); /* a frame of another connection */
	break_seal(2, "not under the seal of this connection"); /* an altered frame */
	break_seal(3, "not under the seal of this connection");
	break_seal(4, "sealed before a knock");
	break_seal(5, "has secrets, and is not sealed");
	check_alive();
}
END_TEST

START_TEST(refusals_say_why)
{
	struct bytes x = {.n = 0};
	struct wm_refuse r;

	memcpy(x.b, "GET / HTTP/1.1\r\n\r\n", 18);
	x.n = 18;
	r = refusal_of(&x);
	ck_assert_uint_eq(r.code, WIRE_MASTER_CONNECTION_FAILED);
	ck_assert_ptr_nonnull(strstr(r.text, "port is for agents"));

	add_header(&x, WIRE_FRAME_MAX + 1);
	r = refusal_of(&x);
	ck_assert_ptr_nonnull(strstr(r.text, "1048576"));

	add_header(&x, 100000);
	r = refusal_of(&x);
	ck_assert_ptr_nonnull(strstr(r.text, "100000 bytes are too many for a hello"));

	add_header(&x, 0);
	x.b[6] = WIRE_KIND_ADMIN;
	r = refusal_of(&x);
	ck_assert_ptr_nonnull(strstr(r.text, "malformed"));

	add_header(&x, 0);
	x.b[4] = 7;
	r = refusal_of(&x);
	ck_assert_uint_eq(r.code, WIRE_VERSION_MISMATCH);
	ck_assert_ptr_nonnull(strstr(r.text, "version 7"));
	ck_assert_ptr_nonnull(strstr(r.text, "version 1"));
	ck_assert_uint_eq(r.version_min, WM_VERSION_MIN);
	ck_assert_uint_eq(r.version_max, WM_VERSION_MAX);

	x.n = 0;
	add_hello(&x, 7, 9);
	r = refusal_of(&x);
	ck_assert_uint_eq(r.code, WIRE_VERSION_MISMATCH);
	ck_assert_ptr_nonnull(strstr(r.text, "7 to 9"));
	ck_assert_ptr_nonnull(strstr(r.text, "3 to 3"));

	x.n = 0;
	add_join(&x);
	(void)refusal_of(&x);
	check_alive();
}
END_TEST

/* ---- connections ---- */

/* The number of connections from one address is limited. The master closes the oldest ones. */
START_TEST(idle_connections_harm_nobody)
{
	static int fds[1000];
	const size_t n = sizeof fds / sizeof fds[0];
	unsigned too_many = 0;

	for (size_t i = 0; i < n; i++)
		fds[i] = connect_agent();
	check_alive();
	for (size_t i = 0; i < n; i++)
		too_many +=
			strcmp(expect_refusal(fds[i]).text, "no hello came within 1000 ms") != 0;
	ck_assert_uint_ge(too_many, n - 256);
	check_alive();
}
END_TEST

static void short_hello(void)
{
	prepare();
	cfg.hello_timeout_ms = 1000;
	start();
}

START_TEST(slowly_sent_bytes_do_not_count_as_hello)
{
	uint8_t hdr[WIRE_FRAME_HDR];
	struct pollfd p = {.fd = connect_agent(), .events = POLLIN};
	size_t i = 0;

	wire_frame_put(hdr, WIRE_KIND_MASTER, 1000);
	put(p.fd, hdr, sizeof hdr);
	while (poll(&p, 1, 100) == 0 && i++ < 100)
		put(p.fd, "x", 1);
	ck_assert_str_eq(expect_refusal(p.fd).text, "no hello came within 1000 ms");
}
END_TEST

static void few_connections(void)
{
	prepare();
	cfg.max_conns = 3;
	start();
}

START_TEST(connections_are_bounded)
{
	int fds[3];

	for (int i = 0; i < 3; i++)
		fds[i] = connect_agent();
	check_alive(); /* one more connection replaces the oldest one that has sent no hello */
	ck_assert_ptr_nonnull(strstr(expect_refusal(fds[0]).text, "3 connections"));
	for (int i = 1; i < 3; i++)
		close(fds[i]);
}
END_TEST

/* The address of a member is remembered while it is connected. */
START_TEST(address_of_member_is_kept_while_connected)
{
	struct bytes x = {.n = 0};
	int fd = knock_to_join(&x);

	put(fd, x.b, x.n);
	expect(fd, WM_ROUND, NULL);
	for (int i = 0; i < 3; i++)
		expect(fd, WM_HEARTBEAT, NULL);
	close(fd);
	check_alive();
}
END_TEST

/* More knocks arrive at once than the master answers without a pause. They wait, and none is
 * refused. */
START_TEST(many_knocks_wait_and_are_answered)
{
	struct bytes x = {.n = 0};
	int fd;

	for (unsigned i = 0; i < SOURCE_KNOCKS + 20; i++) {
		fd = knock(&x);
		close(fd);
	}
	fd = knock(&x);
	add_hello(&x, WM_VERSION_MIN, WM_VERSION_MAX);
	put(fd, x.b, x.n);
	expect(fd, WM_HELLO_ACK, NULL);
	close(fd);
	check_alive();
}
END_TEST

/* More messages arrive than the master processes without a pause. The rest waits, and is processed.
 */
START_TEST(many_messages_wait_and_are_processed)
{
	const struct wm_msg beat = {.type = WM_HEARTBEAT};
	struct bytes x = {.n = 0};
	int fd = knock(&x);

	add_hello(&x, WM_VERSION_MIN, WM_VERSION_MAX);
	put(fd, x.b, x.n);
	expect(fd, WM_HELLO_ACK, NULL);
	x = (struct bytes){.n = 0};
	for (int i = 0; i < 100; i++)
		add_msg(&x, &beat);
	for (int i = 0; i < (int)SOURCE_MESSAGES / 100 + 5; i++)
		put(fd, x.b, x.n);
	x = (struct bytes){.seal = seals[fd]};
	add_unknown(&x);
	put(fd, x.b, x.n);
	expect(fd, WM_KICK, NULL);
	close(fd);
	check_alive();
}
END_TEST

/* An agent without members may send long messages only if it has state of a run. */
START_TEST(long_messages_of_strangers_are_refused)
{
	struct bytes x = {.n = 0};
	int fd = knock(&x);

	add_hello(&x, WM_VERSION_MIN, WM_VERSION_MAX);
	put(fd, x.b, x.n);
	expect(fd, WM_HELLO_ACK, NULL);
	add_header(&x, 100000);
	put(fd, x.b, x.n);
	ck_assert_ptr_nonnull(strstr(
		expect_refusal(fd).text, "100000 bytes are too many for an agent without members"));
	check_alive();
}
END_TEST

static void little_memory(void)
{
	prepare();
	cfg.max_buffered = 40 << 10;
	start();
}

/* Agents without members do not complete their messages. The master closes the oldest connections.
 */
START_TEST(input_of_strangers_is_bounded)
{
	static const uint8_t part[15000];
	struct bytes x = {.n = 0};
	struct pollfd p[8];
	int n = 0;

	for (int i = 0; i < 8; i++) {
		p[i] = (struct pollfd){.fd = knock(&x), .events = POLLRDHUP};
		add_hello(&x, WM_VERSION_MIN, WM_VERSION_MAX);
		put(p[i].fd, x.b, x.n);
		add_header(&x, 16 << 10);
		put(p[i].fd, x.b, x.n);
		put(p[i].fd, part, sizeof part);
	}
	while (n < 5) {
		ck_assert_int_gt(poll(p + n, 1, 20000), 0);
		n++;
	}
	check_alive();
	ck_assert_int_eq(poll(p + 7, 1, 0), 0);
	for (int i = 0; i < 8; i++)
		close(p[i].fd);
}
END_TEST

static void no_room(void)
{
	prepare();
	cfg.max_out = 80; /* less than a heartbeat and the answer to hello together */
	start();
}

START_TEST(output_queue_is_bounded)
{
	struct bytes x = {.n = 0};
	struct wm_msg msg;
	int fd = knock_to_join(&x);

	put(fd, x.b, x.n);
	while (read_msg(fd, &msg))
		wire_master_clear(&msg);
	close(fd);
	ck_assert_uint_eq(log_lines("does not read"), 1);
}
END_TEST

START_TEST(vanished_connections_harm_nobody)
{
	struct linger abort_it = {.l_onoff = 1};
	struct bytes x = {.n = 0};

	for (unsigned i = 0; i < 300; i++) {
		int fd = knock(&x);

		add_hello(&x, WM_VERSION_MIN, WM_VERSION_MAX);
		put(fd, x.b, i % 3 ? i % x.n : x.n);
		if (i % 2)
			setsockopt(fd, SOL_SOCKET, SO_LINGER, &abort_it, sizeof abort_it);
		close(fd);
	}
	check_alive();
}
END_TEST

/* Many peers join that are never accepted and read no answers. Neither the log nor the queue grows
 * because of them. */
START_TEST(newcomers_that_are_never_accepted_cost_little)
{
	struct bytes x = {.n = 0}, member = {.n = 0};
	int first = knock(&member), fd;
	struct stat st;

	add_hello(&member, WM_VERSION_MIN, WM_VERSION_MAX);
	add_join(&member); /* the run has a member, so nobody else joins without its vote */
	put(first, member.b, member.n);
	expect(first, WM_ROUND, NULL);
	for (unsigned i = 0; i < 20; i++) {
		fd = knock(&x);
		add_hello(&x, WM_VERSION_MIN, WM_VERSION_MAX);
		put(fd, x.b, x.n);
		for (unsigned k = 0; k < 500; k++) {
			x.n = 0;
			add_unknown(&x);
			if (send(fd, x.b, x.n, MSG_NOSIGNAL) < 0)
				break; /* the master has closed the connection */
		}
		close(fd);
	}
	check_alive();
	ck_assert_int_eq(fstat(fileno(log_file), &st), 0);
	ck_assert_int_lt(st.st_size, 200000); /* less than 20 times 500 lines */
	close(first);
}
END_TEST

static void add_case(Suite *s, const char *name, void (*set_up)(void), const TTest *const *tests)
{
	TCase *c = tcase_create(name);

	tcase_add_checked_fixture(c, set_up, finish);
	tcase_set_timeout(c, 60);
	for (; *tests; tests++)
		tcase_add_test(c, *tests);
	suite_add_tcase(s, c);
}

static void usual(void)
{
	prepare();
	start();
}

Suite *masterd_suite(void)
{
	Suite *s = suite_create("masterd");

	add_case(s, "usual", usual,
		(const TTest *const[]){hello_is_answered, frames_cut_anywhere_are_understood,
			frames_sent_byte_by_byte_are_understood,
			frames_sent_together_are_understood,
			malformed_bytes_of_every_length_are_refused,
			malformed_message_loses_only_peers_of_its_agent,
			sealed_frames_count_once_and_unchanged, refusals_say_why,
			vanished_connections_harm_nobody, many_messages_wait_and_are_processed,
			long_messages_of_strangers_are_refused,
			address_of_member_is_kept_while_connected,
			many_knocks_wait_and_are_answered,
			newcomers_that_are_never_accepted_cost_little, NULL});
	add_case(s, "short hello", short_hello,
		(const TTest *const[]){idle_connections_harm_nobody,
			slowly_sent_bytes_do_not_count_as_hello, NULL});
	add_case(s, "few connections", few_connections,
		(const TTest *const[]){connections_are_bounded, NULL});
	add_case(s, "little memory", little_memory,
		(const TTest *const[]){input_of_strangers_is_bounded, NULL});
	add_case(s, "impatient", impatient,
		(const TTest *const[]){hello_answer_has_host_timeout, NULL});
	add_case(s, "no room", no_room, (const TTest *const[]){output_queue_is_bounded, NULL});
	return s;
}
