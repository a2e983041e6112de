/* SPDX-License-Identifier: MIT
 *
 * Masters as child processes. The program is tests/shim/standin_masterd.sh.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "tests/shim/fixture.h"
#include "tests/shim/suites.h"

static char note[96];

static void setup(void)
{
	const char *top = getenv("abs_top_srcdir");
	char path[512];

	fx_make_dir();
	snprintf(note, sizeof note, "%s/note", fx_dir);
	snprintf(path, sizeof path, "%s/tests/shim/standin_masterd.sh", top ? top : ".");
	setenv("PCCL_MASTERD", path, 1);
	setenv("XDG_STANDIN_NOTE", note, 1);
}

static void teardown(void)
{
	fx_remove_dir();
}

/* Returns an address with a port that is free at the moment. */
static ccoip_socket_address_t free_address(void)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	ccoip_socket_address_t a = fx_params().master_address;
	socklen_t len = sizeof sin;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_eq(bind(fd, (struct sockaddr *)&sin, len), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&sin, &len), 0);
	close(fd);
	a.port = ntohs(sin.sin_port);
	return a;
}

static bool can_connect(ccoip_socket_address_t a)
{
	struct sockaddr_in sin = {.sin_family = AF_INET,
		.sin_port = htons(a.port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool ok = connect(fd, (struct sockaddr *)&sin, sizeof sin) == 0;

	close(fd);
	return ok;
}

static pcclMasterInstance_t *new_master(ccoip_socket_address_t *ret)
{
	pcclMasterInstance_t *m = NULL;

	*ret = free_address();
	fx_assert_succeeds(pcclCreateMaster(*ret, &m));
	return m;
}

static pcclMasterInstance_t *interrupted;

static void on_signal(int sig)
{
	(void)sig;
	pcclInterruptMaster(interrupted); /* NOLINT(bugprone-signal-handler): documented as safe */
}

START_TEST(a_master_runs_from_its_creation_to_its_interrupt)
{
	ccoip_socket_address_t a;
	pcclMasterInstance_t *m = new_master(&a);
	char text[128] = "";
	FILE *f;

	ck_assert(can_connect(a));
	fx_assert_fails(pcclMasterAwaitTermination(m), pcclInvalidArgument, "never started");
	fx_assert_succeeds(pcclRunMaster(m));
	fx_assert_fails(pcclRunMaster(m), pcclInvalidArgument, "running");
	fx_assert_fails(pcclDestroyMaster(m), pcclInvalidUsage, "pcclMasterAwaitTermination");
	ck_assert(can_connect(a));
	interrupted = m;
	signal(SIGUSR1, on_signal);
	ck_assert_int_eq(raise(SIGUSR1), 0);
	fx_assert_succeeds(pcclMasterAwaitTermination(m));
	fx_assert_succeeds(pcclMasterAwaitTermination(m));
	ck_assert(!can_connect(a));
	ck_assert_int_eq(pcclInterruptMaster(m), pcclInvalidArgument);
	fx_assert_fails(pcclRunMaster(m), pcclInvalidArgument, "already ended");
	fx_assert_succeeds(pcclDestroyMaster(m));
	f = fopen(note, "r");
	ck_assert_ptr_nonnull(f);
	ck_assert_ptr_nonnull(fgets(text, sizeof text, f));
	fclose(f);
	ck_assert_str_eq(text, "--listen-fd 3 --parent-fd 4\n");
}
END_TEST

START_TEST(unusable_addresses_are_refused)
{
	ccoip_socket_address_t a, other;
	pcclMasterInstance_t *m = new_master(&a), *second = NULL;

	fx_assert_fails(pcclCreateMaster(a, &second), pcclInvalidUsage, "in use");
	fx_assert_fails(pcclCreateMaster(a, NULL), pcclInvalidArgument, "p_master_handle_out");
	other = a;
	other.inet.ipv4.data[0] = 192;
	other.inet.ipv4.data[1] = 0;
	other.inet.ipv4.data[2] = 2; /* an address for documentation */
	fx_assert_fails(pcclCreateMaster(other, &second), pcclInvalidUsage, "192.0.2.1");
	other = a;
	other.port = 0;
	fx_assert_fails(pcclCreateMaster(other, &second), pcclInvalidArgument, "port");
	fx_assert_succeeds(pcclDestroyMaster(m));
	ck_assert_ptr_null(second);
	fx_assert_succeeds(pcclCreateMaster(a, &m));
	fx_assert_succeeds(pcclDestroyMaster(m));
	fx_assert_fails(pcclRunMaster(NULL), pcclInvalidArgument, "NULL");
	ck_assert_int_eq(pcclInterruptMaster(NULL), pcclInvalidArgument);
}
END_TEST

START_TEST(a_failure_of_the_master_program_is_reported)
{
	const char *program = getenv("PCCL_MASTERD");
	char saved[512];
	ccoip_socket_address_t a;
	pcclMasterInstance_t *m = new_master(&a);

	snprintf(saved, sizeof saved, "%s", program);
	setenv("PCCL_MASTERD", "/nonexistent/ccoip-masterd", 1);
	fx_assert_fails(pcclRunMaster(m), pcclInternalError, "/nonexistent/ccoip-masterd");
	setenv("PCCL_MASTERD", saved, 1);
	setenv("XDG_STANDIN_SHORT", "1", 1);
	setenv("XDG_STANDIN_STATUS", "3", 1);
	fx_assert_succeeds(pcclRunMaster(m));
	fx_assert_fails(pcclMasterAwaitTermination(m), pcclInternalError, "status 3");
	fx_assert_succeeds(pcclDestroyMaster(m));
	fx_assert_succeeds(pcclInit()); /* asks for codes that PCCL 1.0 does not have */
	setenv("XDG_STANDIN_STATUS", "71", 1);
	m = new_master(&a);
	fx_assert_succeeds(pcclRunMaster(m));
	fx_assert_fails(pcclMasterAwaitTermination(m), pcclOutOfMemory,
		"reached a limit of its system; see its message on standard error");
	fx_assert_succeeds(pcclDestroyMaster(m));
}
END_TEST

/* The master ends with its process, although a child of this process lives on. */
START_TEST(a_master_does_not_outlive_its_process)
{
	int gate[2], back[2];
	pid_t pid;
	char c;

	ck_assert_int_eq(pipe(gate), 0);
	ck_assert_int_eq(pipe(back), 0);
	pid = fork();
	if (pid == 0) {
		ccoip_socket_address_t a = free_address();
		pcclMasterInstance_t *m;

		if (pcclCreateMaster(a, &m) != pcclSuccess || pcclRunMaster(m) != pcclSuccess)
			_exit(1);
		if (fork() == 0) {
			close(gate[1]);
			(void)!read(gate[0], &c, 1); /* lives until the end of the test */
			_exit(0);
		}
		(void)!write(back[1], &a.port, sizeof a.port);
		pause();
	}
	{
		ccoip_socket_address_t a = fx_params().master_address;

		ck_assert_int_eq(read(back[0], &a.port, sizeof a.port), sizeof a.port);
		ck_assert(can_connect(a));
		ck_assert_int_eq(kill(pid, SIGKILL), 0);
		ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
		for (int i = 0; i < 1000 && can_connect(a); i++)
			usleep(10000);
		ck_assert(!can_connect(a));
	}
	close(gate[1]);
}
END_TEST

START_TEST(a_master_belongs_to_one_process)
{
	pcclResult_t got[4];
	pcclMasterInstance_t *m;
	int back[2];
	size_t i;

	ck_assert_int_eq(pipe(back), 0);
	fx_assert_succeeds(pcclCreateMaster(free_address(), &m));
	if (fork() == 0) {
		got[0] = pcclRunMaster(m);
		got[1] = pcclInterruptMaster(m);
		got[2] = pcclMasterAwaitTermination(m);
		got[3] = pcclDestroyMaster(m);
		_exit(write(back[1], got, sizeof got) == sizeof got ? 0 : 1);
	}
	ck_assert_int_eq(read(back[0], got, sizeof got), sizeof got);
	for (i = 0; i < 4; i++)
		ck_assert_int_eq(got[i], pcclInvalidUsage);
	fx_assert_succeeds(pcclDestroyMaster(m));
	close(back[0]);
	close(back[1]);
}
END_TEST

/* PCCL_LOG_LEVEL has the names of PCCL 1.0. */
START_TEST(the_log_level_is_passed_to_the_master)
{
	static const char *const levels[][2] = {{"DEBUG", " --log-level debug"},
		{"INFO", " --log-level info"}, {"WARN", " --log-level warning"},
		{"error", " --log-level err"}, {"FATAL", " --log-level err"}, {"", ""},
		{"LOUD", ""}};
	ccoip_socket_address_t a;
	pcclMasterInstance_t *m = new_master(&a);
	int log = memfd_create("log", MFD_CLOEXEC), saved = dup(STDERR_FILENO);
	bool unknown = strcmp(levels[_i][0], "LOUD") == 0;
	char text[256] = "", wanted[128];
	FILE *f;

	setenv("PCCL_LOG_LEVEL", levels[_i][0], 1);
	ck_assert_int_ge(dup2(log, STDERR_FILENO), 0);
	fx_assert_succeeds(pcclRunMaster(m));
	ck_assert_int_eq(pcclInterruptMaster(m), pcclSuccess);
	fx_assert_succeeds(pcclMasterAwaitTermination(m));
	fx_assert_succeeds(pcclDestroyMaster(m));
	ck_assert_int_ge(dup2(saved, STDERR_FILENO), 0);
	close(saved);
	ck_assert_int_lt(pread(log, text, sizeof text - 1, 0), sizeof text - 1);
	close(log);
	ck_assert(!!strstr(text, "PCCL_LOG_LEVEL is \"LOUD\" and is ignored: ") == unknown);
	ck_assert_ptr_eq(strchr(text, '\n'), strrchr(text, '\n')); /* once */
	f = fopen(note, "r");
	ck_assert_ptr_nonnull(f);
	ck_assert_ptr_nonnull(fgets(text, sizeof text, f));
	fclose(f);
	snprintf(wanted, sizeof wanted, "--listen-fd 3 --parent-fd 4%s\n", levels[_i][1]);
	ck_assert_str_eq(text, wanted);
}
END_TEST

START_TEST(a_master_interrupted_before_its_start_does_not_run)
{
	ccoip_socket_address_t a;
	pcclMasterInstance_t *m = new_master(&a);

	ck_assert_int_eq(pcclInterruptMaster(m), pcclSuccess);
	fx_assert_succeeds(pcclRunMaster(m));
	fx_assert_succeeds(pcclMasterAwaitTermination(m));
	ck_assert(!can_connect(a));
	ck_assert_int_ne(access(note, F_OK), 0);
	fx_assert_succeeds(pcclDestroyMaster(m));
}
END_TEST

/* The interrupt may come at any moment of pcclRunMaster. */
START_TEST(an_interrupt_during_the_start_ends_the_master)
{
	struct itimerval tv = {.it_value.tv_usec = 1 + 150 * _i}, off = {0};
	ccoip_socket_address_t a;
	pcclMasterInstance_t *m = new_master(&a);

	interrupted = m;
	signal(SIGALRM, on_signal);
	ck_assert_int_eq(setitimer(ITIMER_REAL, &tv, NULL), 0);
	fx_assert_succeeds(pcclRunMaster(m));
	fx_assert_succeeds(pcclMasterAwaitTermination(m)); /* returns when the signal has come */
	ck_assert_int_eq(setitimer(ITIMER_REAL, &off, NULL), 0);
	fx_assert_succeeds(pcclDestroyMaster(m));
}
END_TEST

static unsigned count_open(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Fills gaps between open descriptors. RLIMIT_NOFILE limits the numbers of descriptors, so with
 * gaps the process could open more descriptors than the test expects. The stand-in inherits the
 * limit, and its shell needs a descriptor with a number above 10. */
static void fill_gaps(void)
{
	int highest = 12, fd;

	for (fd = 0; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) >= 0 && fd > highest)
			highest = fd;
	do
		fd = fcntl(0, F_DUPFD_CLOEXEC, 0);
	while (fd >= 0 && fd < highest);
	close(fd);
}

static void allow_open(unsigned n)
{
	struct rlimit rl;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &rl), 0);
	rl.rlim_cur = n;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &rl), 0);
}

/* Checks the failure: the error names the limit and this process, and no descriptor stays open. */
static void check_shortage(pcclResult_t r, unsigned allowed, unsigned open_before)
{
	char is[32];

	snprintf(is, sizeof is, "is %u", allowed);
	ck_assert_msg(r == pcclOutOfMemory, "%d: %s", (int)r, pcclGetLastError());
	fx_assert_fails(r, pcclOutOfMemory, "RLIMIT_NOFILE");
	fx_assert_fails(r, pcclOutOfMemory, is);
	fx_assert_fails(r, pcclOutOfMemory, "(pid ");
	ck_assert_uint_eq(count_open(), open_before);
}

START_TEST(a_process_without_free_descriptors_gets_an_error)
{
	ccoip_socket_address_t a = free_address();
	pcclMasterInstance_t *m = NULL;
	pcclResult_t r = pcclInternalError;
	unsigned n, more;

	fx_assert_succeeds(pcclInit()); /* asks for codes that PCCL 1.0 does not have */
	fill_gaps();
	n = count_open();
	allow_open(n);
	check_shortage(pcclCreateMaster(a, &m), n, n);
	ck_assert_ptr_null(m);
	allow_open(n + 1);
	fx_assert_succeeds(pcclCreateMaster(a, &m));
	for (more = 1; more < 10; more++) {
		allow_open(n + more);
		r = pcclRunMaster(m);
		if (r == pcclSuccess)
			break;
		check_shortage(r, n + more, n + 1);
	}
	ck_assert_int_eq(r, pcclSuccess);
	ck_assert_uint_gt(more, 3); /* a pair of sockets, and the descriptors of the child */
	ck_assert_int_eq(pcclInterruptMaster(m), pcclSuccess);
	allow_open(n + 10);
	fx_assert_succeeds(pcclMasterAwaitTermination(m));
	fx_assert_succeeds(pcclDestroyMaster(m));
}
END_TEST

/* A connection from this port to another port. The test closes it after it has read a line of the
 * master's log. */
struct holder {
	int out, log;
	char line[512];
};

static void *let_go(void *arg)
{
	struct linger hard = {.l_onoff = 1}; /* the port is free at once after the close */
	struct holder *h = arg;

	(void)!read(h->log, h->line, sizeof h->line - 1);
	setsockopt(h->out, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
	close(h->out);
	return NULL;
}

START_TEST(a_port_in_use_by_an_outgoing_connection_is_awaited)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	ccoip_socket_address_t a = free_address();
	socklen_t len = sizeof sin;
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), pipes[2], err;
	struct holder h = {.out = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
	pcclMasterInstance_t *m = NULL;
	pthread_t thread;

	ck_assert_int_eq(bind(listener, (struct sockaddr *)&sin, len), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	sin.sin_port = htons(a.port);
	ck_assert_int_eq(bind(h.out, (struct sockaddr *)&sin, len), 0);
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&sin, &len), 0);
	ck_assert_int_eq(connect(h.out, (struct sockaddr *)&sin, len), 0);
	ck_assert_int_eq(pipe2(pipes, O_CLOEXEC), 0);
	h.log = pipes[0];
	err = dup(2);
	ck_assert_int_eq(dup2(pipes[1], 2), 2);
	ck_assert_int_eq(pthread_create(&thread, NULL, let_go, &h), 0);
	fx_assert_succeeds(pcclCreateMaster(a, &m));
	dup2(err, 2);
	close(pipes[1]);
	pthread_join(thread, NULL);
	ck_assert_ptr_nonnull(strstr(h.line, "in use by an outgoing connection"));
	ck_assert(can_connect(a));
	fx_assert_succeeds(pcclDestroyMaster(m));
}
END_TEST

Suite *master_suite(void)
{
	Suite *s = suite_create("master");
	TCase *tc = tcase_create("master");

	tcase_add_unchecked_fixture(tc, fx_make_base, fx_remove_base);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 30);
	tcase_add_test(tc, a_master_runs_from_its_creation_to_its_interrupt);
	tcase_add_loop_test(tc, the_log_level_is_passed_to_the_master, 0, 7);
	tcase_add_test(tc, a_master_interrupted_before_its_start_does_not_run);
	tcase_add_loop_test(tc, an_interrupt_during_the_start_ends_the_master, 0, 20);
	tcase_add_test(tc, unusable_addresses_are_refused);
	tcase_add_test(tc, a_process_without_free_descriptors_gets_an_error);
	tcase_add_test(tc, a_port_in_use_by_an_outgoing_connection_is_awaited);
	tcase_add_test(tc, a_failure_of_the_master_program_is_reported);
	tcase_add_test(tc, a_master_does_not_outlive_its_process);
	tcase_add_test(tc, a_master_belongs_to_one_process);
	suite_add_tcase(s, tc);
	return s;
}
