/* SPDX-License-Identifier: MIT
 *
 * Masters as child processes. The program is tests/shim/standin_masterd.sh.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "tests/shim/fixture.h"

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

/* A port that nobody has at the moment. */
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
	pcclInterruptMaster(interrupted); /* NOLINT(bugprone-signal-handler): it says so */
}

START_TEST(from_creation_to_the_end)
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
	fx_assert_fails(pcclRunMaster(m), pcclInvalidArgument, "has been");
	fx_assert_succeeds(pcclDestroyMaster(m));
	f = fopen(note, "r");
	ck_assert_ptr_nonnull(f);
	ck_assert_ptr_nonnull(fgets(text, sizeof text, f));
	fclose(f);
	ck_assert_str_eq(text, "--listen-fd 3 --parent-fd 4\n");
}
END_TEST

START_TEST(addresses_that_cannot_be)
{
	ccoip_socket_address_t a, other;
	pcclMasterInstance_t *m = new_master(&a), *second = NULL;

	fx_assert_fails(pcclCreateMaster(a, &second), pcclInvalidUsage, "in use");
	fx_assert_fails(pcclCreateMaster(a, NULL), pcclInvalidArgument, "p_master_handle_out");
	other = a;
	other.inet.ipv4.data[0] = 192;
	other.inet.ipv4.data[1] = 0;
	other.inet.ipv4.data[2] = 2; /* of the documentation */
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

START_TEST(programs_that_fail)
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
}
END_TEST

/* The master ends with the process, although a child of that lives on. */
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
			(void)!read(gate[0], &c, 1); /* lives until the test says so */
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

/* By the names of PCCL 1.0. */
START_TEST(the_log_level_is_passed_on)
{
	static const char *const levels[][2] = {{"DEBUG", " --log-level debug"},
		{"INFO", " --log-level info"}, {"WARN", " --log-level warning"},
		{"error", " --log-level err"}, {"FATAL", " --log-level err"}, {"", ""},
		{"LOUD", ""}};
	ccoip_socket_address_t a;
	pcclMasterInstance_t *m = new_master(&a);
	char text[128] = "", wanted[128];
	FILE *f;

	setenv("PCCL_LOG_LEVEL", levels[_i][0], 1);
	fx_assert_succeeds(pcclRunMaster(m));
	ck_assert_int_eq(pcclInterruptMaster(m), pcclSuccess);
	fx_assert_succeeds(pcclMasterAwaitTermination(m));
	fx_assert_succeeds(pcclDestroyMaster(m));
	f = fopen(note, "r");
	ck_assert_ptr_nonnull(f);
	ck_assert_ptr_nonnull(fgets(text, sizeof text, f));
	fclose(f);
	snprintf(wanted, sizeof wanted, "--listen-fd 3 --parent-fd 4%s\n", levels[_i][1]);
	ck_assert_str_eq(text, wanted);
}
END_TEST

START_TEST(an_interrupt_before_the_start)
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

/* At any moment of pcclRunMaster. */
START_TEST(an_interrupt_during_the_start)
{
	struct itimerval tv = {.it_value.tv_usec = 1 + 150 * _i}, off = {0};
	ccoip_socket_address_t a;
	pcclMasterInstance_t *m = new_master(&a);

	interrupted = m;
	signal(SIGALRM, on_signal);
	ck_assert_int_eq(setitimer(ITIMER_REAL, &tv, NULL), 0);
	fx_assert_succeeds(pcclRunMaster(m));
	fx_assert_succeeds(pcclMasterAwaitTermination(m)); /* the signal comes at last */
	ck_assert_int_eq(setitimer(ITIMER_REAL, &off, NULL), 0);
	fx_assert_succeeds(pcclDestroyMaster(m));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("master");
	TCase *tc = tcase_create("master");

	tcase_add_unchecked_fixture(tc, fx_make_base, fx_remove_base);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 30);
	tcase_add_test(tc, from_creation_to_the_end);
	tcase_add_loop_test(tc, the_log_level_is_passed_on, 0, 7);
	tcase_add_test(tc, an_interrupt_before_the_start);
	tcase_add_loop_test(tc, an_interrupt_during_the_start, 0, 20);
	tcase_add_test(tc, addresses_that_cannot_be);
	tcase_add_test(tc, programs_that_fail);
	tcase_add_test(tc, a_master_does_not_outlive_its_process);
	suite_add_tcase(s, tc);
	return tl_run(s);
}
